#include "windows.h"

#include <algorithm>
#include <string>
#include <utility>

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

SampleStarts Windows::starts_in(const RowReader& rows) const {
  const bool has_targets = !rows.spec().targets.empty();
  const bool has_groups = rows.groups().defined();
  const std::int64_t needed = shape_.span(has_targets);
  SampleStarts starts(shape_.stride);
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
    add_starts(series, needed, has_targets, starts);
  }
  if (starts.size() == 0) {
    throw DataError("no group has the " + counted(needed) +
                    " that a sample of the sequence windows needs (" +
                    sum_in_words(shape_, has_targets) + ")");
  }
  return starts;
}

std::unique_ptr<SampleReader> Windows::do_samples(const RowReader& rows) const {
  check(rows.spec());
  SampleStarts starts = starts_in(rows);
  std::vector<std::size_t> joined;
  for (std::size_t i = 0; include_targets_ && i < rows.spec().targets.size(); ++i) {
    if (is_vector_of_numbers(rows.spec().targets[i]))
      joined.push_back(i);
  }
  return std::make_unique<WindowReader>(std::make_unique<const StepTable>(rows, std::move(joined)),
                                        shape_, std::move(starts));
}

}  // namespace treadle::sequences
