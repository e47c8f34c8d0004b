#include <treadle/core/cross_validator.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include <treadle/base/error.h>
#include <treadle/core/fit_id.h>
#include <treadle/core/plugin_call.h>

#include "target_rows.h"

namespace treadle {
namespace {

/// Counts the uses of rows.
class Uses {
 public:
  explicit Uses(std::int64_t rows) : seen_(static_cast<std::size_t>(rows), 0) {}

  /// What is wrong with these rows of `part`; empty when nothing is.
  std::string defect_of(const std::string& part, const std::vector<std::int64_t>& rows) {
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

/// What is wrong with the fold, to go on after "it returned a plan in which"; empty when nothing
/// is. `uses` has the test rows.
std::string defect_of(const Fold& fold, Uses uses) {
  if (!FitId::is_part(fold.name)) {
    return "a fold is called \"" + fold.name +
           "\", which cannot name a fit: " + std::string(FitId::kPartRule);
  }
  if (fold.training.empty())
    return fold.name + " has no training rows";
  if (fold.validation.empty())
    return fold.name + " has no validation rows";
  for (const std::vector<std::int64_t>* part : {&fold.training, &fold.validation}) {
    if (std::string defect = uses.defect_of(fold.name, *part); !defect.empty())
      return defect;
  }
  return "";
}

/// Throws DataError when a sample of the list touches one of the rows.
void expect_apart(const SampleReader& samples, const std::string& fold,
                  const std::vector<std::int64_t>& list, const TargetRows& rows, const char* part) {
  for (const std::int64_t sample : list) {
    const std::optional<TargetRows::Touched> touched = rows.touched_by(samples, sample);
    if (!touched)
      continue;
    throw DataError("in " + fold + ", row " + std::to_string(touched->row) +
                    " of the data is in training " + samples.describe_row(sample) +
                    " and in the target of " + part + " " + samples.describe_row(touched->sample) +
                    ": the model would be told the answer; split by time, {\"use\": \"hold_out\", "
                    "\"strategy\": \"chronological\"}");
  }
}

void expect_no_leak(const SampleReader& samples, const ValidationPlan& plan) {
  const TargetRows tested(samples, plan.test);
  for (const Fold& fold : plan.folds) {
    expect_apart(samples, fold.name, fold.training, TargetRows(samples, fold.validation),
                 "validation");
    expect_apart(samples, fold.name, fold.training, tested, "test");
  }
}

/// Fits lie in folders of these names.
std::string doubled_name(const ValidationPlan& plan) {
  std::set<std::string> names;
  if (plan.refit)
    names.insert("final");
  for (const Fold& fold : plan.folds) {
    if (!names.insert(fold.name).second)
      return "two fits are called \"" + fold.name + "\"";
  }
  return "";
}

}  // namespace

ValidationPlan CrossValidator::plan(const SplitRequest& request) const {
  if (request.rows < 2) {
    throw DataError("the data has " + std::to_string(request.rows) +
                    " row(s); training and validation need at least one each");
  }
  ValidationPlan plan = call_plugin(*this, "plan", [&] { return do_plan(request); });
  if (plan.folds.empty())
    refuse_result(*this, "plan", "returned a plan without folds");
  Uses uses(request.rows);
  std::string defect = uses.defect_of("the test", plan.test);
  uses.mark_as_test();
  for (std::size_t i = 0; i < plan.folds.size() && defect.empty(); ++i)
    defect = defect_of(plan.folds[i], uses);
  if (defect.empty())
    defect = doubled_name(plan);
  if (!defect.empty())
    refuse_result(*this, "plan", "returned a plan in which " + defect);
  if (!plan.test.empty() && !plan.refit && plan.folds.size() > 1) {
    refuse_result(*this, "plan",
                  "returned a plan with test rows and without a model to test: it has several "
                  "folds and no refit");
  }
  if (request.samples != nullptr)
    expect_no_leak(*request.samples, plan);
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
