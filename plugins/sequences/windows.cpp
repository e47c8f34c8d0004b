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
std::string sum_in_words(const WindowShape& shape, bool has_horizon) {
  std::string text = "lookback " + std::to_string(shape.lookback);
  if (has_horizon && shape.gap > 0)
    text += " + gap " + std::to_string(shape.gap);
  if (has_horizon)
    text += " + horizon " + std::to_string(shape.horizon);
  return text;
}

}  // namespace

Windows::Windows(const Config& config)
    : shape_{config.get<std::int64_t>("lookback"), config.get<std::int64_t>("horizon"),
             config.get<std::int64_t>("stride"), config.get<std::int64_t>("gap"),
             config.get<std::int64_t>("evaluation_stride")},
      columns_{config.get_or("future", std::vector<std::string>()),
               config.get_or("static", std::vector<std::string>())},
      include_targets_(config.get<bool>("include_targets")),
      skip_short_(config.get<std::string>("short_series") == "skip") {}

Windows::~Windows() = default;

void Windows::check(const DataSpec& spec) const {
  for (const PortSpec& input : spec.inputs) {
    const bool is_table = (input.role == Role::kFeatures || input.role == Role::kCategories) &&
                          input.shape.size() == 1 && is_fixed(input.shape) && !input.is_auxiliary();
    if (!is_table) {
      throw DataError("the sequence windows takes tables of numbers and categories, and input " +
                      quote_text(input.name) + " is none: a row has shape " +
                      shape_text(input.shape));
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
  const bool has_horizon = this->has_horizon(rows.spec());
  const bool has_groups = rows.groups().defined();
  const std::int64_t needed = shape_.span(has_horizon);
  SampleStarts starts(shape_.stride);
  for (const RowRange& series : series_of(rows)) {
    if (series.size() < needed && !(skip_short_ && has_groups)) {
      throw DataError((has_groups ? rows.describe_row(series.begin) + ": a group of " +
                                        counted(series.size()) + " begins here, and"
                                  : "there are " + counted(series.size()) + ", and") +
                      " a sample of the sequence windows needs " + std::to_string(needed) + " (" +
                      sum_in_words(shape_, has_horizon) + ")" +
                      (has_groups ? "; shorten the windows, or set \"short_series\": \"skip\""
                                  : "; shorten the windows"));
    }
    add_starts(series, needed, has_targets, starts);
  }
  if (starts.size() == 0) {
    throw DataError("no group has the " + counted(needed) +
                    " that a sample of the sequence windows needs (" +
                    sum_in_words(shape_, has_horizon) + ")");
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
  auto table = std::make_unique<const StepTable>(rows, window_ports(rows.spec(), columns_, joined));
  return std::make_unique<WindowReader>(std::move(table), shape_, std::move(starts));
}

}  // namespace treadle::sequences
