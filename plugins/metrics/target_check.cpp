#include "target_check.h"

#include <algorithm>
#include <string>

#include <treadle/base/error.h>

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
  throw DataError("metric \"" + std::string(metric) + "\" needs " + needed + ", but the target \"" +
                  target.name + "\" is " + std::string(name_of(target.kind)) + "; use " +
                  std::string(metrics_for(target.kind)) +
                  (may_be_classes ? ", or set \"task\": \"classification\" in the data if its "
                                    "numbers stand for classes"
                                  : ""));
}

void expect_classes(std::string_view metric, const TargetSpec& target) {
  expect_kind(metric, {TargetKind::kClasses}, target);
}

void expect_numbers(std::string_view metric, const TargetSpec& target) {
  expect_kind(metric, {TargetKind::kNumbers}, target);
}

}  // namespace treadle::metrics
