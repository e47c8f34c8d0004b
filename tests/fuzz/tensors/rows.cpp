#include "rows.h"

#include <numeric>
#include <vector>

#include <ATen/ops/max.h>
#include <ATen/ops/min.h>

#include <treadle/base/error.h>

#include "targets.h"

namespace treadle::fuzz {
namespace {

// Five rows and the number of the others, each with a field in it; a header of a few hundred bytes.
constexpr std::size_t kLongestRefusal = 10'000;

void add_bits(const at::Tensor& tensor, std::string& bytes) {
  if (!tensor.defined())
    return;
  const at::Tensor plain = tensor.contiguous();
  bytes.append(static_cast<const char*>(plain.data_ptr()), plain.nbytes());
}

void promise_shape(const at::Tensor& tensor, std::int64_t rows,
                   const std::vector<std::int64_t>& shape) {
  bool fits = tensor.dim() == static_cast<std::int64_t>(shape.size()) + 1 && tensor.size(0) == rows;
  for (std::size_t i = 0; fits && i < shape.size(); ++i)
    fits = shape[i] == kVaries || tensor.size(static_cast<std::int64_t>(i) + 1) == shape[i];
  promise(fits, "rows have the shape that the spec promises");
}

void promise_indices(const at::Tensor& tensor, std::int64_t least, std::int64_t end) {
  promise(tensor.scalar_type() == at::kLong, "indices are int64");
  if (tensor.numel() == 0)
    return;
  promise(tensor.min().item<std::int64_t>() >= least && tensor.max().item<std::int64_t>() < end,
          "indices are within their dictionary");
}

void promise_inputs(const DataSpec& spec, const Batch& batch) {
  promise(batch.inputs.size() == spec.inputs.size(), "there is a tensor for each input");
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    const PortSpec& port = spec.inputs[i];
    promise_shape(batch.inputs[i], batch.size(), port.shape);
    promise(batch.inputs[i].scalar_type() == port.dtype, "an input has the dtype of its port");
    if (port.role == Role::kTokens)
      promise_indices(batch.inputs[i], 0, port.vocabulary_size);
    for (std::size_t c = 0; port.role == Role::kCategories && c < port.columns.size(); ++c) {
      promise_indices(batch.inputs[i].select(1, static_cast<std::int64_t>(c)),
                      port.columns[c].may_be_missing ? -1 : 0,
                      static_cast<std::int64_t>(port.columns[c].categories.size()));
    }
  }
}

void promise_targets(const DataSpec& spec, const Batch& batch) {
  promise(batch.targets.size() == spec.targets.size(), "there is a tensor for each target");
  for (std::size_t i = 0; i < spec.targets.size(); ++i) {
    const TargetSpec& target = spec.targets[i];
    promise_shape(batch.targets[i], batch.size(), target.shape);
    if (target.kind == TargetKind::kClasses)
      promise_indices(batch.targets[i], 0, target.class_count());
  }
}

}  // namespace

bool opens(DataProvider& data, const OpenRequest& request, std::size_t file_size,
           std::string& refusal) {
  try {
    data.open(request);
    return true;
  } catch (const DataError& error) {
    refusal = error.what();
    promise_readable(refusal, kLongestRefusal + 6 * file_size);
    return false;
  }
}

ReadRows read_rows(DataProvider& data) {
  const RowReader* const reader = data.ask<RowReader>();
  promise(reader != nullptr && reader->rows() > 0, "an open provider has rows");
  std::vector<std::int64_t> all(static_cast<std::size_t>(reader->rows()));
  std::iota(all.begin(), all.end(), 0);
  Batch batch;
  reader->gather(all, batch);
  promise(batch.size() == reader->rows(), "a batch has the rows that were asked for");
  promise_inputs(data.spec(), batch);
  promise_targets(data.spec(), batch);
  promise_readable(reader->describe_row(reader->rows() - 1), 1000);

  ReadRows rows;
  for (const at::Tensor& input : batch.inputs)
    add_bits(input, rows.inputs);
  for (const at::Tensor& target : batch.targets)
    add_bits(target, rows.targets);
  for (const at::Tensor& weights : batch.position_weights)
    add_bits(weights, rows.targets);
  add_bits(batch.weights, rows.targets);
  add_bits(reader->groups(), rows.order);
  add_bits(reader->timestamps(), rows.order);
  rows.content_hash = data.content_hash();
  return rows;
}

}  // namespace treadle::fuzz
