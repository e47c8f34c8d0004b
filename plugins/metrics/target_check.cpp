#include "target_check.h"

#include <string>

#include <treadle/base/error.h>

namespace treadle::metrics {
namespace {

[[noreturn]] void refuse(std::string_view metric, std::string_view needed, const TargetSpec& target,
                         std::string_view got, std::string_view remedy) {
  const std::string start =
      "metric \"" + std::string(metric) + "\" needs " + std::string(needed) + ", but ";
  if (target.kind == TargetKind::kNone)
    throw DataError(start + "the data has no target; name the target column in the data slot");
  throw DataError(start + "the target \"" + target.name + "\" is " + std::string(got) + "; use " +
                  std::string(remedy));
}

}  // namespace

void expect_classes(std::string_view metric, const TargetSpec& target) {
  if (target.kind != TargetKind::kClasses)
    refuse(metric, "classes", target, "numbers", "rmse, mae or r2");
}

void expect_numbers(std::string_view metric, const TargetSpec& target) {
  if (target.kind != TargetKind::kNumbers)
    refuse(metric, "numbers", target, "classes", "accuracy, macro_f1 or log_loss");
}

}  // namespace treadle::metrics
