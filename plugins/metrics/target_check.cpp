#include "target_check.h"

#include <string>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle::metrics {
namespace {

std::string_view metrics_for(TargetKind kind) {
  switch (kind) {
    case TargetKind::kClasses:
      return "accuracy, macro_f1 or log_loss";
    case TargetKind::kNumbers:
      return "rmse, mae or r2";
    case TargetKind::kLabels:
      return "macro_f1, hamming_loss or accuracy";
    case TargetKind::kDistribution:
      return "log_loss or kl_div";
  }
  return "another metric";
}

}  // namespace

void expect_kind(std::string_view metric, std::initializer_list<TargetKind> kinds,
                 const TargetSpec& target) {
  treadle::expect_kind("metric \"" + std::string(metric) + "\"", kinds, target,
                       metrics_for(target.kind));
}

void expect_classes(std::string_view metric, const TargetSpec& target) {
  expect_kind(metric, {TargetKind::kClasses}, target);
}

void expect_two_classes(std::string_view metric, const TargetSpec& target) {
  expect_classes(metric, target);
  if (target.class_count() != 2) {
    throw DataError("metric \"" + std::string(metric) + "\" needs two classes, but the target " +
                    quote_text(target.name) + " has " + std::to_string(target.class_count()) +
                    "; use curves or confusion_matrix");
  }
}

void expect_numbers(std::string_view metric, const TargetSpec& target) {
  expect_kind(metric, {TargetKind::kNumbers}, target);
}

}  // namespace treadle::metrics
