#include "window_reader.h"

#include <cstddef>
#include <utility>

#include "stretches.h"

namespace treadle::sequences {
namespace {

/// "41-136", "41".
std::string in_words(const RowRange& rows) {
  const std::string first = std::to_string(rows.begin);
  return rows.size() == 1 ? "row " + first : "rows " + first + "-" + std::to_string(rows.end - 1);
}

DataSpec sample_spec(const StepTable& table, bool has_weights, const WindowShape& shape) {
  DataSpec spec = table.spec();
  spec.has_weights = has_weights;
  spec.inputs[0].shape = {shape.lookback, table.width()};
  for (TargetSpec& target : spec.targets) {
    if (shape.horizon > 1)
      target.shape.insert(target.shape.begin(), shape.horizon);
  }
  return spec;
}

}  // namespace

WindowReader::WindowReader(std::unique_ptr<const StepTable> table, const WindowShape& shape,
                           SampleStarts starts)
    : table_(std::move(table)),
      shape_(shape),
      spec_(sample_spec(*table_, table_->weights().defined(), shape)),
      starts_(std::move(starts)),
      to_target_(has_targets() ? shape.lookback + shape.gap : shape.lookback - 1),
      rows_of_first_{{0, shape.lookback},
                     {shape.lookback + shape.gap, shape.lookback + shape.gap + shape.horizon}} {
  runs_ = starts_.runs(rows_of_first_);
  groups_ = of_samples(table_->groups(), starts_, to_target_);
  timestamps_ = of_samples(table_->timestamps(), starts_, to_target_);
  if (has_targets())
    label_ends_ = of_samples(table_->label_ends(), starts_, to_target_ + shape.horizon - 1);
}

WindowReader::~WindowReader() = default;

void WindowReader::do_gather(std::span<const std::int64_t> samples, Batch& out) const {
  table_->expect_unchanged();
  const std::vector<std::int64_t> firsts = starts_.of(samples);
  out.inputs.resize(1);
  table_->copy_columns(firsts, shape_.lookback, out.inputs[0]);
  out.targets.resize(spec_.targets.size());
  for (std::size_t i = 0; i < out.targets.size(); ++i) {
    copy_stretches(table_->target(i), firsts, to_target_, shape_.horizon, spec_.targets[i].shape,
                   out.targets[i]);
  }
  out.position_weights.clear();
  if (table_->weights().defined()) {
    copy_stretches(table_->weights(), firsts, to_target_, 1, {}, out.weights);
  } else {
    out.weights = at::Tensor();
  }
}

at::Tensor WindowReader::do_targets(std::size_t target) const {
  return all_stretches(table_->target(target), starts_, to_target_, shape_.horizon,
                       spec_.targets[target].shape);
}

std::string WindowReader::do_describe_row(std::int64_t sample) const {
  const SourceRows rows = do_source_rows(sample);
  return "sample " + std::to_string(sample) + " (" + in_words(rows.inputs) +
         (!has_targets() ? "" : ", target " + in_words(rows.targets)) + ")";
}

}  // namespace treadle::sequences
