#include "target_check.h"

#include <algorithm>
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
  if (std::find(kinds.begin(), kinds.end(), target.kind) != kinds.end())
    return;
  std::string needed;
  for (const TargetKind kind : kinds)
    needed += (needed.empty() ? "" : " or ") + std::string(name_of(kind));
  // Numbers that losses and metrics would take as classes are classes already, unless they have
  // fractions, or another loss takes them as they are.
  const bool may_be_classes =
      target.kind == TargetKind::kNumbers && target.width() == 1 &&
      std::find(kinds.begin(), kinds.end(), TargetKind::kClasses) != kinds.end();
  throw DataError("loss \"" + std::string(loss) + "\" needs " + needed + ", but the target \"" +
                  target.name + "\" is " + std::string(name_of(target.kind)) + "; use " +
                  std::string(losses_for(target.kind)) +
                  (may_be_classes ? ", or set \"task\": \"classification\" in the data if its "
                                    "numbers stand for classes"
                                  : ""));
}

void expect_two_classes(std::string_view loss, const TargetSpec& target) {
  if (target.class_count() >= 2)
    return;
  throw DataError("loss \"" + std::string(loss) +
                  "\" needs at least two classes, but the target \"" + target.name + "\" has " +
                  std::to_string(target.class_count()));
}

}  // namespace treadle::losses
