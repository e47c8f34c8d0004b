#include "target_check.h"

#include <string>

#include <treadle/base/error.h>

namespace treadle::losses {
namespace {

std::string_view losses_for(TargetKind kind) {
  switch (kind) {
    case TargetKind::kClasses:
      return "cross_entropy or bce_with_logits";
    case TargetKind::kNumbers:
      return "mse, l1 or smooth_l1";
    case TargetKind::kLabels:
      return "bce_with_logits";
    case TargetKind::kDistribution:
      return "cross_entropy or kl_div";
  }
  return "another loss";
}

}  // namespace

void expect_kind(std::string_view loss, std::initializer_list<TargetKind> kinds,
                 const TargetSpec& target) {
  treadle::expect_kind("loss \"" + std::string(loss) + "\"", kinds, target,
                       losses_for(target.kind));
}

void expect_two_classes(std::string_view loss, const TargetSpec& target) {
  if (target.class_count() >= 2)
    return;
  throw DataError("loss \"" + std::string(loss) +
                  "\" needs at least two classes, but the target \"" + target.name + "\" has " +
                  std::to_string(target.class_count()));
}

}  // namespace treadle::losses
