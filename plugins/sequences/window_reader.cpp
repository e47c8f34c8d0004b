#include "window_reader.h"

#include <cstddef>
#include <numeric>
#include <span>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>

namespace treadle::sequences {
namespace {

/// "41-136", "41".
std::string in_words(const RowRange& rows) {
  const std::string first = std::to_string(rows.begin);
  return rows.size() == 1 ? "row " + first : "rows " + first + "-" + std::to_string(rows.end - 1);
}

DataSpec sample_spec(DataSpec spec, const at::Tensor& inputs, const WindowShape& shape) {
  PortSpec& input = spec.inputs[0];
  input.shape = {shape.lookback, inputs.size(1)};
  input.columns.clear();
  for (TargetSpec& target : spec.targets) {
    if (shape.horizon > 1)
      target.shape.insert(target.shape.begin(), shape.horizon);
  }
  return spec;
}

/// Without weights: a statistic counts each row once.
MatrixRows::Matrices steps_of(const WindowReader::Rows& rows) {
  MatrixRows::Matrices steps;
  steps.spec = rows.spec;
  steps.spec.has_weights = false;
  steps.spec.inputs[0].shape = {rows.inputs.size(1)};
  steps.spec.inputs[0].columns.clear();
  steps.inputs = {rows.inputs};
  steps.targets = rows.targets;
  steps.dtype = rows.inputs.scalar_type();
  return steps;
}

}  // namespace

WindowReader::WindowReader(Rows rows, const WindowShape& shape, std::vector<std::int64_t> starts)
    : shape_(shape),
      steps_(steps_of(rows)),
      spec_(sample_spec(std::move(rows.spec), rows.inputs, shape)),
      starts_(std::move(starts)),
      inputs_(std::move(rows.inputs)),
      targets_(std::move(rows.targets)),
      weights_(std::move(rows.weights)),
      to_target_(targets_.empty() ? shape.lookback - 1 : shape.lookback + shape.gap) {
  at::Tensor anchors = at::empty({static_cast<std::int64_t>(starts_.size())}, at::kLong);
  auto* const anchor = anchors.data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < starts_.size(); ++i)
    anchor[i] = starts_[i] + to_target_;
  if (rows.groups.defined())
    groups_ = at::index_select(rows.groups, 0, anchors);
  if (rows.timestamps.defined())
    timestamps_ = at::index_select(rows.timestamps, 0, anchors);
  if (rows.label_ends.defined() && !targets_.empty())
    label_ends_ = at::index_select(rows.label_ends, 0, anchors.add(shape.horizon - 1));
}

WindowReader::~WindowReader() = default;

void WindowReader::do_gather(std::span<const std::int64_t> samples, Batch& out) const {
  out.inputs.resize(1);
  copy(inputs_, samples, 0, shape_.lookback, spec_.inputs[0].shape, out.inputs[0]);
  out.targets.resize(targets_.size());
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    copy(targets_[i], samples, to_target_, shape_.horizon, spec_.targets[i].shape, out.targets[i]);
  }
  out.position_weights.clear();
  if (weights_.defined()) {
    copy(weights_, samples, to_target_, 1, {}, out.weights);
  } else {
    out.weights = at::Tensor();
  }
}

at::Tensor WindowReader::do_targets(std::size_t target) const {
  std::vector<std::int64_t> all(starts_.size());
  std::iota(all.begin(), all.end(), 0);
  at::Tensor values;
  copy(targets_[target], all, to_target_, shape_.horizon, spec_.targets[target].shape, values);
  return values;
}

SourceRows WindowReader::do_source_rows(std::int64_t sample) const {
  const std::int64_t begin = starts_[static_cast<std::size_t>(sample)];
  const std::int64_t first = begin + shape_.lookback + shape_.gap;
  return {{begin, begin + shape_.lookback}, {first, first + shape_.horizon}};
}

std::string WindowReader::do_describe_row(std::int64_t sample) const {
  const SourceRows rows = do_source_rows(sample);
  return "sample " + std::to_string(sample) + " (" + in_words(rows.inputs) +
         (targets_.empty() ? "" : ", target " + in_words(rows.targets)) + ")";
}

}  // namespace treadle::sequences
