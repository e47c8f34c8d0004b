#include "captured_steps.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <new>
#include <span>

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/where.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <treadle/base/error.h>

namespace treadle::engine {

CapturableStep::~CapturableStep() = default;

namespace {

/// Of a step, all but the numbers and groups of its rows. A tensor that stands in two places comes
/// twice.
std::vector<at::Tensor> tensors_of(const StepRows& rows) {
  std::vector<at::Tensor> all;
  for (const Batch& batch : rows.shards) {
    for (const std::vector<at::Tensor>* list :
         {&batch.inputs, &batch.targets, &batch.original_targets, &batch.position_weights,
          &batch.mixture.targets, &batch.mixture.position_weights})
      all.insert(all.end(), list->begin(), list->end());
    for (const at::Tensor& of_rows : {batch.weights, batch.mixture.shares, batch.mixture.weights})
      all.push_back(of_rows);
  }
  return all;
}

void describe(std::string& text, const at::Tensor& tensor) {
  if (!tensor.defined()) {
    text += "-;";
    return;
  }
  text += c10::str(tensor.scalar_type(), tensor.sizes(), ";");
}

void describe(std::string& text, const StateDict& state) {
  for (const auto& [name, tensor] : state.tensors()) {
    text += name + "=";
    describe(text, tensor);
  }
  text += state.values().dump();
  for (const auto& [name, part] : state.parts()) {
    text += name + "(";
    describe(text, part);
    text += ")";
  }
}

/// Copies values into the tensors that are there. Expects the same names and shapes.
void copy_into(const StateDict& to, const StateDict& from) {
  for (const auto& [name, tensor] : to.tensors())
    at::Tensor(tensor).copy_(from.tensor(name));
  for (const auto& [name, part] : to.parts())
    copy_into(part, from.part(name));
}

StateDict clone_of(const StateDict& state) {
  StateDict clone(state.version());
  for (const auto& [name, tensor] : state.tensors())
    clone.put(name, tensor.clone());
  for (const auto& [name, value] : state.values().items())
    clone.put(name, value);
  for (const auto& [name, part] : state.parts())
    clone.put(name, clone_of(part));
  return clone;
}

void collect(CapturableStep::Memory& all, const std::string& place, const StateDict& state) {
  for (const auto& [name, tensor] : state.tensors())
    all.emplace_back(place + " \"" + name + "\"", tensor);
  for (const auto& [name, part] : state.parts())
    collect(all, place, part);
}

/// What a step has left, in tensors of its own.
class Outcome {
 public:
  explicit Outcome(CapturableStep& step) {
    CapturableStep::Memory all = step.memory();
    for (const ShardMemory& shard : step.shards())
      collect(all, "the model's recurrent state", *shard.model_state);
    for (auto& [name, tensor] : all)
      tensors_.emplace_back(name, tensor.clone());
  }

  /// The name of a tensor that is another one than in `expected`, both of steps from `before`;
  /// empty: there is none. Kernels that add in any order differ in the last digits, so what counts
  /// is how much the step has changed the tensor.
  std::string difference(const Outcome& expected, const Outcome& before) const {
    if (tensors_.size() != expected.tensors_.size())
      return "the number of tensors";
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const auto& [name, mine] = tensors_[i];
      const at::Tensor& its = expected.tensors_[i].second;
      if (mine.sizes() != its.sizes() || mine.scalar_type() != its.scalar_type())
        return name;
      if (at::equal(mine, its))
        continue;
      const bool has_before = i < before.tensors_.size() && before.tensors_[i].first == name &&
                              before.tensors_[i].second.sizes() == its.sizes();
      if (!is_close(mine, its, has_before ? before.tensors_[i].second : at::Tensor()))
        return name;
    }
    return {};
  }

 private:
  static bool is_close(const at::Tensor& mine, const at::Tensor& its, const at::Tensor& before) {
    constexpr double kOfChange = 1e-2;
    constexpr double kOfSize = 1e-6;
    if (!its.is_floating_point())
      return false;
    const auto norm = [](const at::Tensor& tensor) {
      return at::linalg_vector_norm(tensor.to(at::kDouble)).item<double>();
    };
    const at::Tensor both_nan = mine.isnan().logical_and(its.isnan());
    const at::Tensor apart = at::where(both_nan, at::zeros_like(its), mine - its);
    const double change = before.defined() ? norm((its - before).nan_to_num()) : 0;
    return norm(apart) <= kOfChange * change + kOfSize * norm(its.nan_to_num());
  }

  CapturableStep::Memory tensors_;
};

/// The memory of a step as it was when this was made. put_back() may be called again and again.
class Before {
 public:
  explicit Before(CapturableStep& step) : step_(step), memory_(step.memory()) {
    for (const auto& [name, tensor] : memory_)
      values_.push_back(tensor.clone());
    for (const ShardMemory& shard : step.shards())
      states_.push_back(clone_of(*shard.model_state));
  }

  void put_back() {
    for (std::size_t i = 0; i < memory_.size(); ++i)
      memory_[i].second.copy_(values_[i]);
    // A sum that has come since.
    for (const auto& [name, tensor] : step_.memory()) {
      if (std::none_of(memory_.begin(), memory_.end(),
                       [&](const auto& known) { return known.first == name; }))
        tensor.zero_();
    }
    const std::vector<ShardMemory> shards = step_.shards();
    for (std::size_t i = 0; i < shards.size(); ++i) {
      *shards[i].model_state = clone_of(states_[i]);
      shards[i].logged->clear();
    }
  }

 private:
  CapturableStep& step_;
  CapturableStep::Memory memory_;
  std::vector<at::Tensor> values_;
  std::vector<StateDict> states_;
};

/// A step of the same variant that differs from `number` in every number of the host.
StepNumber another(CapturableStep& step, const StepNumber& number) {
  constexpr std::int64_t kFarthest = 100'000;  // epochs have fewer steps
  StepNumber other{number.step + 1, 0.5 * number.rate, number.seed ^ 0x9e3779b97f4a7c15,
                   number.group_rates};
  for (double& rate : other.group_rates)
    rate *= 0.5;
  const std::string variant = step.variant(number);
  while (step.variant(other) != variant && other.step < number.step + kFarthest)
    ++other.step;
  return other;
}

}  // namespace

/// One kind of batch: its record, and the memory through which the host gives it a batch and takes
/// what comes of it.
struct CapturedSteps::Kind {
  std::int64_t seen = 0;
  std::unique_ptr<CapturedWork> work;  // null: not recorded
  StepRows rows;
  std::vector<StateDict> states_before;
  std::vector<StateDict> states_after;
  std::vector<LoggedValues> logged;
};

CapturedSteps::CapturedSteps(const DeviceBackend& backend, c10::Device device, CapturableStep& step,
                             Timeline* timeline)
    : backend_(backend), device_(device), step_(step), timeline_(timeline) {}

CapturedSteps::~CapturedSteps() = default;

bool CapturedSteps::run(const StepRows& rows, const StepNumber& number) {
  if (!why_not_.empty())
    return false;
  const at::NoGradGuard no_gradients;
  if (std::string layout = step_.layout(); layout != layout_) {
    // Records may use memory that is gone by now.
    kinds_.clear();
    recorded_ = 0;
    layout_ = std::move(layout);
  }
  std::string key = step_.variant(number);
  for (const at::Tensor& tensor : tensors_of(rows))
    describe(key, tensor);
  for (const ShardMemory& shard : step_.shards())
    describe(key, *shard.model_state);
  if (kinds_.size() == kMostKnown && !kinds_.contains(key))
    return false;
  std::unique_ptr<Kind>& kind = kinds_[key];
  if (!kind)
    kind = std::make_unique<Kind>();
  if (!kind->work) {
    if (++kind->seen <= kWarmUp || recorded_ == kMostKinds)
      return false;
    record(*kind, rows, number);
    if (!why_not_.empty()) {
      kinds_.clear();
      return false;
    }
  }
  replay(*kind, rows, number);
  ++replays_;
  return true;
}

void CapturedSteps::carry_out(const StepRows& rows, const StepNumber& number) {
  step_.begin(number);
  step_.work(rows);
}

void CapturedSteps::record(Kind& kind, const StepRows& rows, const StepNumber& number) {
  kind.rows = rows.with_each([](const Batch& batch) {
    return batch.with_each([](const at::Tensor& tensor) { return tensor.clone(); });
  });
  const std::vector<ShardMemory> shards = step_.shards();
  std::vector<at::Generator> generators;
  for (const ShardMemory& shard : shards)
    generators.push_back(shard.generators->of_device());
  Before before(step_);
  // What is made once, and what the step before of another kind has replaced, is made now.
  carry_out(kind.rows, number);
  before.put_back();
  for (const ShardMemory& shard : shards)
    kind.states_before.push_back(clone_of(*shard.model_state));
  for (std::size_t i = 0; i < shards.size(); ++i)
    *shards[i].model_state = kind.states_before[i];
  step_.begin(number);
  try {
    // A device records one piece of work at a time, and trainings beside this one share it.
    static std::mutex recording;
    const std::lock_guard alone(recording);
    for (const ShardMemory& shard : shards)
      shard.generators->set_recorded(true);
    kind.work = backend_.capture(device_, generators, [&] { step_.work(kind.rows); });
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    // A fault of the model will come again, where it is carried out.
    why_not_ = error.what();
  }
  if (!why_not_.empty()) {
    before.put_back();
    // libtorch's are of no use after a capture that failed.
    for (const ShardMemory& shard : shards)
      *shard.generators = TaskGenerators(device_);
    return;
  }
  for (const ShardMemory& shard : shards) {
    shard.generators->set_recorded(false);
    kind.states_after.push_back(*shard.model_state);
    kind.logged.push_back(*shard.logged);
  }
  ++recorded_;
  for (const StepNumber& one : {number, another(step_, number)}) {
    before.put_back();
    compare(kind, rows, one);
  }
  before.put_back();
}

void CapturedSteps::compare(Kind& kind, const StepRows& rows, const StepNumber& number) {
  Before before(step_);
  const Outcome start(step_);
  replay(kind, rows, number);
  const Outcome replayed(step_);
  before.put_back();
  carry_out(rows, number);
  const Outcome expected(step_);
  const std::string name = replayed.difference(expected, start);
  if (name.empty())
    return;
  throw TrainingError(
      "step " + std::to_string(number.step) +
      " as it was captured differs from the same step as it is carried out, in " + name +
      ": something in the step is a number of the host (a rate, a count, a seed) that is recorded "
      "instead of read anew, or memory that the step replaces instead of changing; choose "
      "\"resources\": {\"execution\": \"eager\"}, and tell the author of the layer, loss or "
      "optimizer");
}

void CapturedSteps::replay(Kind& kind, const StepRows& rows, const StepNumber& number) {
  const Timeline::Span span(timeline_, Phase::kReplay);
  const std::vector<at::Tensor> to = tensors_of(kind.rows);
  const std::vector<at::Tensor> from = tensors_of(rows);
  for (std::size_t i = 0; i < to.size(); ++i) {
    const bool is_another =
        std::none_of(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(i),
                     [&](const at::Tensor& earlier) { return earlier.is_same(to[i]); });
    if (to[i].defined() && is_another)
      at::Tensor(to[i]).copy_(from[i]);
  }
  const std::vector<ShardMemory> shards = step_.shards();
  for (std::size_t i = 0; i < shards.size(); ++i)
    copy_into(kind.states_before[i], *shards[i].model_state);
  step_.begin(number);
  kind.work->replay();
  for (std::size_t i = 0; i < shards.size(); ++i) {
    *shards[i].model_state = kind.states_after[i];
    *shards[i].logged = kind.logged[i];
  }
}

}  // namespace treadle::engine
