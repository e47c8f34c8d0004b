#include "target_check.h"

#include <string>

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

void expect_numbers(std::string_view metric, const TargetSpec& target) {
  expect_kind(metric, {TargetKind::kNumbers}, target);
}

}  // namespace treadle::metrics
