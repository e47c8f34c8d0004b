#include "target_check.h"

#include <string>

#include <treadle/base/error.h>

namespace treadle::losses {
namespace {

[[noreturn]] void refuse(std::string_view loss, std::string_view needed, const TargetSpec& target,
                         std::string_view got, std::string_view remedy) {
  const std::string start =
      "loss \"" + std::string(loss) + "\" needs " + std::string(needed) + ", but ";
  if (target.kind == TargetKind::kNone)
    throw DataError(start + "the data has no target; name the target column in the data slot");
  throw DataError(start + "the target \"" + target.name + "\" is " + std::string(got) + "; use " +
                  std::string(remedy));
}

}  // namespace

void expect_classes(std::string_view loss, const TargetSpec& target) {
  if (target.kind != TargetKind::kClasses)
    refuse(loss, "classes", target, "numbers", "mse, l1 or smooth_l1");
  if (target.class_count() < 2) {
    throw DataError("loss \"" + std::string(loss) +
                    "\" needs at least two classes, but the target \"" + target.name + "\" has " +
                    std::to_string(target.class_count()));
  }
}

void expect_numbers(std::string_view loss, const TargetSpec& target) {
  if (target.kind != TargetKind::kNumbers)
    refuse(loss, "numbers", target, "classes", "cross_entropy or bce_with_logits");
}

}  // namespace treadle::losses
