#include "predefined.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <map>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/core/validation/leaks.h>
#include <treadle/core/validation/set_aside.h>

namespace treadle::validation {
namespace {

using Rows = std::vector<std::int64_t>;

enum class Part { kTraining, kValidation, kTest, kNone };

struct Word {
  std::string_view word;
  Part part;
};
constexpr std::array kWords = {
    Word{"train", Part::kTraining}, Word{"training", Part::kTraining},
    Word{"val", Part::kValidation}, Word{"validation", Part::kValidation},
    Word{"test", Part::kTest},      Word{"none", Part::kNone},
    Word{"", Part::kNone}};

std::optional<Part> part_called(std::string_view text) {
  const auto* const found =
      std::find_if(kWords.begin(), kWords.end(), [&](const Word& one) { return one.word == text; });
  return found == kWords.end() ? std::nullopt : std::optional(found->part);
}

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= -1
             ? std::optional(value)
             : std::nullopt;
}

/// The text that all target rows of a row have; nothing where they differ.
std::optional<std::string> label_of(const SplitRequest& request,
                                    const std::vector<std::string>& labels, std::int64_t row) {
  const RowRange targets = request.source_rows(row).targets;
  const std::string& first = labels.at(static_cast<std::size_t>(targets.begin));
  for (std::int64_t source = targets.begin; source < targets.end; ++source) {
    if (labels.at(static_cast<std::size_t>(source)) != first)
      return std::nullopt;
  }
  return first;
}

ValidationPlan plan_of_words(const SplitRequest& request, const std::vector<std::string>& labels) {
  Fold fold;
  fold.name = "predefined";
  std::array<RowList::Builder, 4> parts;  // as Part counts them
  for (std::int64_t row = 0; row < request.rows; ++row) {
    const std::optional<std::string> label = label_of(request, labels, row);
    const Part part = label ? part_called(*label).value_or(Part::kNone) : Part::kNone;
    parts.at(static_cast<std::size_t>(part)).add(row);
  }
  fold.training = parts[0].done();
  fold.validation = parts[1].done();
  fold.test = parts[2].done();
  if (fold.training.empty() || fold.validation.empty()) {
    throw DataError(std::string("no row has \"") +
                    (fold.training.empty() ? "train" : "validation") +
                    "\"; training and validation need at least one each");
  }
  ValidationPlan plan;
  plan.folds.push_back(std::move(fold));
  return plan;
}

ValidationPlan plan_of_folds(const SplitRequest& request, const std::vector<std::string>& labels) {
  std::map<std::int64_t, Rows> folds;
  Rows used;
  for (std::int64_t row = 0; row < request.rows; ++row) {
    const std::optional<std::string> label = label_of(request, labels, row);
    if (!label)
      continue;
    used.push_back(row);
    if (const std::int64_t fold = *number_in(*label); fold >= 0)
      folds[fold].push_back(row);
  }
  ValidationPlan plan;
  for (auto& [number, rows] : folds) {
    Fold fold;
    fold.name = "fold-" + std::to_string(number);
    Rows others;
    std::set_difference(used.begin(), used.end(), rows.begin(), rows.end(),
                        std::back_inserter(others));
    fold.training = std::move(others);
    if (fold.training.empty())
      throw DataError("all rows are of fold " + std::to_string(number) +
                      ", so none is left to train on");
    fold.validation = std::move(rows);
    plan.folds.push_back(std::move(fold));
  }
  if (plan.folds.empty())
    throw DataError("each row has fold -1, so none validates");
  return plan;
}

}  // namespace

Predefined::Predefined(const Config& config) : refit_(config.find<bool>("refit")) {
  if (config.json().at("parts").is_string()) {
    column_ = config.get<std::string>("parts");
  } else {
    path_ = config.child("parts").get<std::string>("path");
  }
}

Predefined::~Predefined() = default;

std::vector<std::string> Predefined::labels(const SplitRequest& request) const {
  if (column_) {
    if (request.columns == nullptr) {
      throw DataError("validation has \"parts\": " + quote_text(*column_) +
                      ", and this data has no columns of text; give a file with a line per row, "
                      "{\"path\": ...}");
    }
    return std::move(request.columns->texts({*column_}).front());
  }
  std::ifstream file(*path_);
  if (!file)
    throw DataError(path_->string() + ": cannot be opened");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.back() == '\r')
      line.pop_back();
    lines.push_back(std::move(line));
  }
  if (file.bad())
    throw DataError(path_->string() + ": cannot be read");
  const std::int64_t rows = request.data != nullptr ? request.data->rows() : request.rows;
  if (static_cast<std::int64_t>(lines.size()) != rows) {
    throw DataError(path_->string() + ": has " + std::to_string(lines.size()) +
                    " lines; expected one for each of the " + std::to_string(rows) +
                    " rows of the data, and no header");
  }
  return lines;
}

std::string Predefined::place_of(const SplitRequest& request, std::int64_t row) const {
  if (path_)
    return path_->string() + ":" + std::to_string(row + 1);
  return (request.data != nullptr ? request.data->describe_row(row)
                                  : "row " + std::to_string(row)) +
         ": column " + quote_text(*column_);
}

ValidationPlan Predefined::do_plan(const SplitRequest& request) const {
  const std::vector<std::string> labels = this->labels(request);
  const bool are_numbers = !labels.empty() && number_in(labels.front()).has_value();
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const bool fits =
        are_numbers ? number_in(labels[row]).has_value() : part_called(labels[row]).has_value();
    if (!fits) {
      throw DataError(place_of(request, static_cast<std::int64_t>(row)) + ": expected " +
                      (are_numbers ? "the number of a fold, from 0, or -1"
                                   : "train, validation, test or nothing (or, in all rows, the "
                                     "number of a fold)") +
                      ", got " + quote_text(labels[row]));
    }
  }
  if (!are_numbers && refit_) {
    throw DataError(
        "validation has \"refit\", which has no effect: the rows name parts, not folds, and the "
        "model of that one training is the result; leave \"refit\" out");
  }
  ValidationPlan plan =
      are_numbers ? plan_of_folds(request, labels) : plan_of_words(request, labels);
  if (are_numbers && refit_.value_or(true))
    plan.refit = refit_on(all_rows_but(request.rows, {}));
  return purged(request, std::move(plan));
}

}  // namespace treadle::validation
