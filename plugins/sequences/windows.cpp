#include "windows.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include <ATen/ops/cat.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "window_reader.h"

namespace treadle::sequences {
namespace {

bool is_vector_of_numbers(const TargetSpec& target) {
  return target.kind == TargetKind::kNumbers && target.shape.size() == 1;
}

bool is_fixed(const std::vector<std::int64_t>& shape) {
  return std::find(shape.begin(), shape.end(), kVaries) == shape.end();
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape)
    text += (text.empty() ? "" : ", ") + (size == kVaries ? "*" : std::to_string(size));
  return "{" + text + "}";
}

std::string counted(std::int64_t count) {
  return std::to_string(count) + (count == 1 ? " row" : " rows");
}

/// "lookback 96 + gap 2 + horizon 24".
std::string sum_in_words(const WindowShape& shape, bool has_targets) {
  std::string text = "lookback " + std::to_string(shape.lookback);
  if (has_targets && shape.gap > 0)
    text += " + gap " + std::to_string(shape.gap);
  if (has_targets)
    text += " + horizon " + std::to_string(shape.horizon);
  return text;
}

}  // namespace

std::vector<std::int64_t> window_starts(const RowRange& series, const WindowShape& shape,
                                        bool has_targets) {
  const std::int64_t last = series.end - shape.span(has_targets);
  std::vector<std::int64_t> starts;
  if (last < series.begin)
    return starts;
  const std::int64_t left_over = (last - series.begin) % shape.stride;
  for (std::int64_t start = series.begin + (has_targets ? 0 : left_over); start <= last;
       start += shape.stride)
    starts.push_back(start);
  return starts;
}

Windows::Windows(const Config& config)
    : shape_{config.get<std::int64_t>("lookback"), config.get<std::int64_t>("horizon"),
             config.get<std::int64_t>("stride"), config.get<std::int64_t>("gap"),
             config.get<std::int64_t>("evaluation_stride")},
      include_targets_(config.get<bool>("include_targets")),
      skip_short_(config.get<std::string>("short_series") == "skip") {}

Windows::~Windows() = default;

void Windows::check(const DataSpec& spec) const {
  if (spec.inputs.size() != 1) {
    std::vector<std::string> names;
    for (const PortSpec& port : spec.inputs)
      names.push_back(port.name);
    throw DataError(
        "the sequence windows takes data with one input, a table of numbers, and there "
        "are " +
        std::to_string(names.size()) + ": " + quoted_list(names) +
        "; leave the others out, categories among them");
  }
  const PortSpec& input = spec.inputs[0];
  if (input.role != Role::kFeatures || input.shape.size() != 1 || !is_fixed(input.shape)) {
    throw DataError("the sequence windows takes a table of numbers, and input " +
                    quote_text(input.name) + " is none: a row has shape " +
                    shape_text(input.shape));
  }
  for (const Column& column : input.columns) {
    if (column.may_be_missing) {
      throw DataError("the sequence windows: values of column " + quote_text(column.name) +
                      " are missing, and no transform can fill them in windows; fill them in the "
                      "data, or leave the column out");
    }
  }
  for (const TargetSpec& target : spec.targets) {
    if (!is_fixed(target.shape) || !target.padded_like.empty()) {
      throw DataError("the sequence windows takes targets of one shape, and that of target " +
                      quote_text(target.name) + " varies: " + shape_text(target.shape));
    }
  }
  if (include_targets_ &&
      std::none_of(spec.targets.begin(), spec.targets.end(), is_vector_of_numbers)) {
    throw DataError(
        spec.targets.empty()
            ? "the sequence windows has \"include_targets\": true, and these rows have no targets; "
              "to predict on rows without targets, train with \"include_targets\": false and name "
              "the column among the data's inputs"
            : "the sequence windows has \"include_targets\": true, and no target is a number or a "
              "vector of numbers");
  }
}

std::vector<std::int64_t> Windows::starts_in(const RowReader& rows) const {
  const bool has_targets = !rows.spec().targets.empty();
  const bool has_groups = rows.groups().defined();
  const std::int64_t needed = shape_.span(has_targets);
  std::vector<std::int64_t> starts;
  for (const RowRange& series : series_of(rows)) {
    if (series.size() < needed && !(skip_short_ && has_groups)) {
      throw DataError((has_groups ? rows.describe_row(series.begin) + ": a group of " +
                                        counted(series.size()) + " begins here, and"
                                  : "there are " + counted(series.size()) + ", and") +
                      " a sample of the sequence windows needs " + std::to_string(needed) + " (" +
                      sum_in_words(shape_, has_targets) + ")" +
                      (has_groups ? "; shorten the windows, or set \"short_series\": \"skip\""
                                  : "; shorten the windows"));
    }
    const std::vector<std::int64_t> some = window_starts(series, shape_, has_targets);
    starts.insert(starts.end(), some.begin(), some.end());
  }
  if (starts.empty()) {
    throw DataError("no group has the " + counted(needed) +
                    " that a sample of the sequence windows needs (" +
                    sum_in_words(shape_, has_targets) + ")");
  }
  return starts;
}

std::unique_ptr<SampleReader> Windows::do_samples(const RowReader& rows) const {
  check(rows.spec());
  std::vector<std::int64_t> starts = starts_in(rows);
  std::vector<std::int64_t> all(static_cast<std::size_t>(rows.rows()));
  std::iota(all.begin(), all.end(), 0);
  Batch batch;
  rows.gather(all, batch);
  for (std::size_t i = 0; i < batch.position_weights.size(); ++i) {
    if (batch.position_weights[i].defined()) {
      throw DataError("the sequence windows takes weights of rows, and target " +
                      quote_text(rows.spec().targets[i].name) + " has weights of positions");
    }
  }
  std::vector<at::Tensor> joined = {batch.inputs[0]};
  for (std::size_t i = 0; include_targets_ && i < batch.targets.size(); ++i) {
    if (is_vector_of_numbers(rows.spec().targets[i]))
      joined.push_back(batch.targets[i].to(batch.inputs[0].scalar_type()));
  }
  WindowReader::Rows read;
  read.spec = rows.spec();
  read.inputs = joined.size() == 1 ? joined[0].contiguous() : at::cat(joined, 1);
  for (const at::Tensor& target : batch.targets)
    read.targets.push_back(target.contiguous());
  read.weights = batch.weights.defined() ? batch.weights.contiguous() : at::Tensor();
  read.groups = rows.groups();
  read.timestamps = rows.timestamps();
  read.label_ends = rows.label_ends();
  return std::make_unique<WindowReader>(std::move(read), shape_, std::move(starts));
}

}  // namespace treadle::sequences
