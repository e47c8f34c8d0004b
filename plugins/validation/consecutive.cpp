#include "consecutive.h"

#include <string>

#include <treadle/base/error.h>
#include <treadle/core/validation/leaks.h>
#include <treadle/core/validation/time_steps.h>

namespace treadle::validation {
namespace {

RowList part_of(const TimeSteps& steps, std::int64_t begin, std::int64_t end, const char* part) {
  RowList rows = steps.within(begin, end);
  if (rows.empty()) {
    throw DataError(
        "the " + std::string(part) + " part, steps " + std::to_string(begin) + " to " +
        std::to_string(end - 1) +
        " of the data, has no sample: none has its whole target there; take more steps");
  }
  return rows;
}

}  // namespace

Consecutive::Consecutive(const Config& config)
    : training_(find_size(config, "train_size")),
      validation_(find_size(config, "validation_size").value_or(Size(0.2))),
      test_(find_size(config, "test_size")) {}

Consecutive::~Consecutive() = default;

ValidationPlan Consecutive::do_plan(const SplitRequest& request) const {
  const TimeSteps steps(request, TimeSteps::Axis::kData);
  const std::int64_t count = steps.count();
  const std::int64_t validation = validation_.of(count);
  const std::int64_t test = test_ ? test_->of(count) : 0;
  const std::int64_t training = training_ ? training_->of(count) : count - validation - test;
  if (training < 1 || training + validation + test > count) {
    throw DataError((training_ ? "\"train_size\": " + training_->text() + ", " : std::string()) +
                    "\"validation_size\": " + validation_.text() +
                    (test_ ? " and \"test_size\": " + test_->text() : std::string()) +
                    " need more than the " + std::to_string(count) +
                    " time steps of the data; take less of them");
  }
  Fold fold;
  fold.name = "consecutive";
  fold.training = part_of(steps, 0, training, "training");
  fold.validation = part_of(steps, training, training + validation, "validation");
  if (test > 0)
    fold.test = part_of(steps, training + validation, training + validation + test, "test");
  ValidationPlan plan;
  plan.folds.push_back(std::move(fold));
  return purged(request, std::move(plan));
}

}  // namespace treadle::validation
