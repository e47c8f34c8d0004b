#include "data/batch_slot.h"

#include <algorithm>
#include <utility>

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/engine/device_traffic.h>

namespace treadle::engine {
namespace {

bool only_here(const at::Tensor& tensor) {
  return !tensor.defined() || (tensor.use_count() == 1 && tensor.storage().use_count() == 1);
}

/// Whether the last user of a batch has let go of all its tensors, so that they may be written
/// again.
bool reusable(const Batch& batch) {
  const auto all_here = [](const std::vector<at::Tensor>& tensors) {
    return std::all_of(tensors.begin(), tensors.end(), only_here);
  };
  const auto free_targets = [&] {
    for (std::size_t i = 0; i < batch.targets.size(); ++i) {
      const at::Tensor& target = batch.targets[i];
      const at::Tensor& original = batch.original_targets[i];
      const bool is_free = target.is_same(original)
                               ? target.use_count() == 2 && target.storage().use_count() == 1
                               : only_here(target) && only_here(original);
      if (!is_free)
        return false;
    }
    return true;
  };
  return all_here(batch.inputs) && free_targets() && all_here(batch.position_weights) &&
         only_here(batch.weights) && only_here(batch.rows) && only_here(batch.groups);
}

std::int64_t bytes_of(const Batch& batch) {
  std::int64_t bytes = 0;
  const auto add = [&bytes](const at::Tensor& tensor) {
    if (tensor.defined())
      bytes += static_cast<std::int64_t>(tensor.nbytes());
  };
  for (const std::vector<at::Tensor>* tensors :
       {&batch.inputs, &batch.targets, &batch.position_weights}) {
    for (const at::Tensor& tensor : *tensors)
      add(tensor);
  }
  add(batch.weights);
  add(batch.rows);
  add(batch.groups);
  return bytes;
}

}  // namespace

void BatchSlot::fill(const SlotWork& work, ShardRange wanted) {
  if (error || section == nullptr)
    return;
  const Timeline::Span span(work.options.timeline, Phase::kData);
  const at::NoGradGuard no_gradients;
  try {
    count_ = std::min(
        work.options.batch_size,
        section->order->size() - (place.batch - section->first_batch) * work.options.batch_size);
    const bool may_write = arrived_.has_passed();
    parts_.resize(wanted.size());
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      Part& part = parts_[i];
      part.shard = wanted.first + i;
      if (!may_write || !reusable(part.batch))
        part.batch = Batch();
      fill(part, work);
    }
  } catch (const NumberTooLarge& too_large) {
    error = std::make_exception_ptr(
        DataError(section->reader->describe_row(too_large.row()) + ": " + too_large.what()));
  } catch (...) {
    error = std::current_exception();
  }
}

void BatchSlot::fill(Part& part, const SlotWork& work) {
  const PipelineOptions& options = work.options;
  const std::int64_t begin = StepRows::begin_of(part.shard, options.shards, count_);
  const std::int64_t end = StepRows::begin_of(part.shard + 1, options.shards, count_);
  if (begin == end) {
    part.batch = Batch();
    return;
  }
  rows_.resize(static_cast<std::size_t>(end - begin));
  section->order->fill((place.batch - section->first_batch) * options.batch_size + begin, rows_);
  work.preparation.put_back(part.batch, part.memory);
  section->reader->gather(rows_, part.batch);
  if (work.preparation.has_host_part())
    work.preparation.before_transfer(part.batch, context_of(part, work), part.memory);
  // What is staged stays in the slot, and the next batch is gathered into it.
  if (options.staging != nullptr)
    part.batch = part.batch.with_each(
        [&](const at::Tensor& tensor) { return options.staging->staged(tensor); });
  if (work.preparation.has_device_part() && options.device.is_cpu() && !options.host_part_only)
    work.preparation.after_transfer(part.batch, context_of(part, work));
}

/// A batch in one piece draws what it always has.
ApplyContext BatchSlot::context_of(const Part& part, const SlotWork& work) const {
  const auto pass = static_cast<std::uint64_t>(place.pass);
  const auto batch = static_cast<std::uint64_t>(place.batch);
  return {work.options.training, work.options.shards == 1
                                     ? work.random.seed("batch", {pass, batch})
                                     : work.random.seed("batch", {pass, batch, part.shard})};
}

void BatchSlot::send(const SlotWork& work) {
  const c10::Device device = work.options.device;
  if (device.is_cpu() || error || section == nullptr)
    return;
  const Timeline::Span span(work.options.timeline, Phase::kData);
  try {
    const at::NoGradGuard no_gradients;
    const StreamScope on_stream(work.copies);
    for (Part& part : parts_) {
      if (part.batch.size() == 0)
        continue;
      part.sent = engine::sent(part.batch, device, work.options.timeline);
      if (work.preparation.has_device_part())
        work.preparation.after_transfer(part.sent, context_of(part, work));
    }
    arrived_.record(work.copies);
  } catch (...) {
    error = std::current_exception();
  }
}

StepRows BatchSlot::take(const SlotWork& work) {
  const c10::Device device = work.options.device;
  StepRows rows{count_};
  if (device.is_cpu()) {
    for (const Part& part : parts_)
      rows.shards.push_back(part.batch);
    return rows;
  }
  const c10::Stream stream = current_stream(device);
  arrived_.hold_back(stream);
  // Made on the stream of the copies, which must not use its memory again too early.
  for (Part& part : parts_) {
    rows.shards.push_back(
        std::exchange(part.sent, Batch()).with_each([&](const at::Tensor& tensor) {
          use_on(stream, tensor);
          return tensor;
        }));
  }
  return rows;
}

std::int64_t BatchSlot::bytes(const SlotWork& work) const {
  std::int64_t bytes = 0;
  for (const Part& part : parts_) {
    bytes += bytes_of(part.batch);
    if (!work.options.device.is_cpu())
      bytes += work.preparation.growth_on_device(part.batch);
  }
  return std::max<std::int64_t>(bytes, 1);
}

}  // namespace treadle::engine
