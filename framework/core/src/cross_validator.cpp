#include <treadle/core/cross_validator.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include <treadle/base/error.h>
#include <treadle/core/fit_id.h>
#include <treadle/core/leaks.h>
#include <treadle/core/plugin_call.h>
#include <treadle/core/set_aside.h>

namespace treadle {
namespace {

using Rows = std::vector<std::int64_t>;

/// Counts the uses of rows.
class Uses {
 public:
  explicit Uses(std::int64_t rows) : seen_(static_cast<std::size_t>(rows), 0) {}

  /// What is wrong with these rows of `part`; empty when nothing is.
  std::string defect_of(const std::string& part, const Rows& rows) {
    for (const std::int64_t row : rows) {
      if (row < 0 || row >= static_cast<std::int64_t>(seen_.size())) {
        return part + " has row " + std::to_string(row) + " of " + std::to_string(seen_.size());
      }
      char& mark = seen_[static_cast<std::size_t>(row)];
      if (mark == kTest)
        return part + " uses row " + std::to_string(row) + ", which is set aside for the test";
      if (mark != 0)
        return part + " uses row " + std::to_string(row) + " twice";
      mark = 1;
    }
    return "";
  }
  /// All that was counted so far is for the test.
  void mark_as_test() { std::replace(seen_.begin(), seen_.end(), char{1}, kTest); }

 private:
  static constexpr char kTest = 2;
  std::vector<char> seen_;
};

/// What is wrong with the rows of a fold, to go on after "it returned a plan in which"; empty when
/// nothing is. `uses` has the rows that it must not use.
std::string defect_of_rows(const Fold& fold, Uses& uses) {
  for (const Rows* part : {&fold.training, &fold.validation, &fold.test}) {
    if (std::string defect = uses.defect_of(fold.name, *part); !defect.empty())
      return defect;
  }
  return "";
}

std::string defect_of_name(const std::string& name) {
  return FitId::is_part(name) ? ""
                              : "a fold is called \"" + name +
                                    "\", which cannot name a fit: " + std::string(FitId::kPartRule);
}

std::string defect_of_inner(const Fold& fold, std::int64_t rows) {
  if (fold.test.empty())
    return fold.name + " has inner folds and no test rows";
  if (!fold.validation.empty())
    return fold.name + " has inner folds and validation rows";
  Uses outside(rows);
  outside.defect_of("", all_rows_but(rows, fold.training));
  for (const Fold& inner : fold.inner) {
    const std::string name = fold.name + "/" + inner.name;
    if (std::string defect = defect_of_name(inner.name); !defect.empty())
      return defect;
    if (inner.training.empty() || inner.validation.empty() || !inner.test.empty() ||
        !inner.inner.empty() || inner.starts_from) {
      return name + " has other parts than training and validation rows";
    }
    Uses uses = outside;
    uses.mark_as_test();
    if (!defect_of_rows(inner, uses).empty())
      return name + " uses a row twice, or one that is no training row of " + fold.name;
  }
  return "";
}

std::string defect_of(const Fold& fold, std::size_t index, std::int64_t rows, Uses uses) {
  if (std::string defect = defect_of_name(fold.name); !defect.empty())
    return defect;
  if (fold.training.empty())
    return fold.name + " has no training rows";
  if (fold.validation.empty() && fold.inner.empty())
    return fold.name + " has no validation rows";
  if (fold.starts_from && *fold.starts_from >= index)
    return fold.name + " starts from a fold that is not before it";
  if (std::string defect = defect_of_rows(fold, uses); !defect.empty())
    return defect;
  return fold.inner.empty() ? "" : defect_of_inner(fold, rows);
}

std::string defect_of_refit(const Fold& refit, std::size_t folds, Uses& uses) {
  if (refit.training.empty())
    return "the refit has no training rows";
  if (!refit.validation.empty() || !refit.inner.empty())
    return "the refit has validation rows or inner folds";
  if (refit.starts_from && *refit.starts_from >= folds)
    return "the refit starts from a fold that is not there";
  // Its test rows measure the run's model, so no fold may have chosen anything by them. Its
  // training rows are those of the folds again.
  if (std::string defect = uses.defect_of("the test", refit.test); !defect.empty())
    return defect;
  uses.mark_as_test();
  Uses own = uses;
  return own.defect_of("the refit", refit.training);
}

/// Fits lie in folders of these names.
std::string doubled_name(const std::vector<Fold>& folds, bool has_refit) {
  std::set<std::string> names;
  if (has_refit)
    names.insert("final");
  for (const Fold& fold : folds) {
    if (!names.insert(fold.name).second)
      return "two fits are called \"" + fold.name + "\"";
    if (!fold.inner.empty()) {
      if (std::string doubled = doubled_name(fold.inner, true); !doubled.empty())
        return doubled;
    }
  }
  return "";
}

std::string defect_of(const ValidationPlan& plan, std::int64_t rows) {
  Uses uses(rows);
  if (plan.refit) {
    if (std::string defect = defect_of_refit(*plan.refit, plan.folds.size(), uses); !defect.empty())
      return defect;
  }
  for (std::size_t i = 0; i < plan.folds.size(); ++i) {
    if (std::string defect = defect_of(plan.folds[i], i, rows, uses); !defect.empty())
      return defect;
    if (plan.folds[i].test.empty() != plan.folds.front().test.empty())
      return "some folds are tested and others are not";
  }
  return doubled_name(plan.folds, plan.refit.has_value());
}

/// "row 8712 of the data (line 8714 of ETTh1.csv, 2017-06-28 00:00)".
std::string source_in_words(const SplitRequest& request, std::int64_t row) {
  std::string text = "row " + std::to_string(row) + " of the data";
  if (request.data == nullptr)
    return text;
  std::string more = request.data->describe_row(row);
  if (more == "row " + std::to_string(row))
    more.clear();
  if (const std::string time = request.data->describe_time(row); !time.empty())
    more += (more.empty() ? "" : ", ") + time;
  return more.empty() ? text : text + " (" + more + ")";
}

/// "sample 3 (rows 1-96, target rows 97-120)", "row 17 (line 18 of a.csv)".
std::string row_in_words(const SplitRequest& request, std::int64_t row) {
  if (request.samples != nullptr)
    return request.describe(row);
  return source_in_words(request, request.source_rows(row).inputs.begin);
}

/// Throws DataError when one of the rows would tell a held-out target.
void expect_apart(const SplitRequest& request, const std::string& fold, const char* part,
                  const Rows& rows, const char* other, const Rows& held_out) {
  if (rows.empty() || held_out.empty())
    return;
  const Leaks leaks(request, held_out);
  for (const std::int64_t row : rows) {
    const std::optional<Leaks::Leak> leak = leaks.of(row);
    if (!leak)
      continue;
    const std::string known = row_in_words(request, leak->held_out);
    if (leak->source) {
      throw DataError("in " + fold + ", " + source_in_words(request, *leak->source) + " is in " +
                      part + " " + row_in_words(request, row) + " and in the target of " + other +
                      " " + known +
                      ": the model would be told the answer; split by time, {\"use\": "
                      "\"time_series\"} or {\"use\": \"hold_out\", \"strategy\": "
                      "\"chronological\"}");
    }
    throw DataError("in " + fold + ", the label of " + part + " " + row_in_words(request, row) +
                    " is made of times that the label of " + other + " " + known +
                    " is made of as well: the model would be told a part of the answer; purge "
                    "such rows, {\"use\": \"purged\"} or another split by time");
  }
}

void expect_no_leak(const SplitRequest& request, const ValidationPlan& plan) {
  const auto expect_fold = [&](const std::string& name, const Fold& fold, const Rows& test) {
    expect_apart(request, name, "training", fold.training, "validation", fold.validation);
    expect_apart(request, name, "training", fold.training, "test", test);
    expect_apart(request, name, "validation", fold.validation, "test", test);
  };
  const Rows tested = plan.refit ? plan.refit->test : Rows();
  for (const Fold& fold : plan.folds) {
    expect_fold(fold.name, fold, fold.test);
    expect_fold(fold.name, fold, tested);
    for (const Fold& inner : fold.inner) {
      expect_fold(fold.name + "/" + inner.name, inner, fold.test);
      expect_fold(fold.name + "/" + inner.name, inner, tested);
    }
  }
  if (plan.refit)
    expect_apart(request, "the refit", "training", plan.refit->training, "test", tested);
}

/// Leaves of the parts that judge a model those samples that are worth it.
void thin(Fold& fold, const SplitRequest& request) {
  for (Rows* const part : {&fold.validation, &fold.test}) {
    Rows numbers;
    for (const std::int64_t row : *part)
      numbers.push_back(request.numbers.empty() ? row
                                                : request.numbers[static_cast<std::size_t>(row)]);
    const Rows kept = request.samples->evaluated(numbers);
    auto next = kept.begin();
    std::size_t count = 0;
    for (std::size_t i = 0; i < numbers.size() && next != kept.end(); ++i) {
      if (numbers[i] != *next)
        continue;
      (*part)[count++] = (*part)[i];
      ++next;
    }
    part->resize(count);
  }
  for (Fold& inner : fold.inner)
    thin(inner, request);
}

void thin(ValidationPlan& plan, const SplitRequest& request) {
  for (Fold& fold : plan.folds)
    thin(fold, request);
  if (plan.refit)
    thin(*plan.refit, request);
}

}  // namespace

SplitRequest SplitRequest::part(const Rows& some) const {
  SplitRequest part = *this;
  const at::Tensor index = at::tensor(some, at::kLong);
  const auto select = [&](at::Tensor& tensor) {
    if (tensor.defined())
      tensor = tensor.index_select(0, index);
  };
  part.rows = static_cast<std::int64_t>(some.size());
  for (at::Tensor& values : part.target_values)
    select(values);
  select(part.groups);
  select(part.timestamps);
  select(part.label_ends);
  part.numbers.clear();
  for (const std::int64_t row : some)
    part.numbers.push_back(numbers.empty() ? row : numbers.at(static_cast<std::size_t>(row)));
  return part;
}

SourceRows SplitRequest::source_rows(std::int64_t row) const {
  const std::int64_t number = numbers.empty() ? row : numbers[static_cast<std::size_t>(row)];
  if (samples != nullptr)
    return samples->source_rows(number);
  return {{number, number + 1}, {number, number + 1}};
}

std::string SplitRequest::describe(std::int64_t row) const {
  const std::int64_t number = numbers.empty() ? row : numbers[static_cast<std::size_t>(row)];
  const RowReader* const reader = samples != nullptr ? samples : data;
  return reader != nullptr ? reader->describe_row(number) : "row " + std::to_string(number);
}

ValidationPlan CrossValidator::plan(const SplitRequest& request) const {
  if (request.rows < 2) {
    throw DataError("the data has " + std::to_string(request.rows) +
                    " row(s); training and validation need at least one each");
  }
  ValidationPlan plan = call_plugin(*this, "plan", [&] { return do_plan(request); });
  if (plan.folds.empty())
    refuse_result(*this, "plan", "returned a plan without folds");
  if (const std::string defect = defect_of(plan, request.rows); !defect.empty())
    refuse_result(*this, "plan", "returned a plan in which " + defect);
  if (request.samples != nullptr)
    thin(plan, request);
  expect_no_leak(request, plan);
  return plan;
}

std::int64_t CrossValidator::first_rows_of_stream() const {
  const std::int64_t rows =
      call_plugin(*this, "first_rows_of_stream", [&] { return do_first_rows_of_stream(); });
  if (rows < 1)
    refuse_result(*this, "first_rows_of_stream", "returned " + std::to_string(rows));
  return rows;
}

std::int64_t CrossValidator::do_first_rows_of_stream() const {
  throw DataError(
      "the data can only be read in order, and this validation needs all rows at once; use "
      "{\"use\": \"hold_out\", \"rows\": 1000}, which keeps the first 1000 rows");
}

}  // namespace treadle
