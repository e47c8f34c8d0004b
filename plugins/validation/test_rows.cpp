#include "test_rows.h"

#include <algorithm>
#include <array>
#include <utility>

#include <treadle/base/json_words.h>

#include "stratified_target.h"

namespace treadle::validation {
namespace {

constexpr const char* kAuto = "auto";

struct Way {
  const char* strategy;
  SetAside::By by;
};
constexpr std::array kWays = {Way{"random", SetAside::By::kRow},
                              Way{"stratified", SetAside::By::kClass},
                              Way{"chronological", SetAside::By::kTime}};

}  // namespace

TestRows::TestRows(const Config& config, std::optional<std::string> stratify_by)
    : fraction_(config.get_or("test_fraction", 0.0)),
      strategy_(config.get_or("test_strategy", std::string(kAuto))),
      stratify_by_(std::move(stratify_by)) {
  if (!has_any() && strategy_ != kAuto) {
    config.fail("test_strategy",
                "has no effect without \"test_fraction\", the part of the rows to test on");
  }
}

void TestRows::expect_model(const Config& config, bool refit) const {
  if (has_any() && !refit) {
    config.fail(
        "test_fraction",
        "sets rows aside to test the model on, and \"refit\": false leaves no single model");
  }
}

ValidationPlan TestRows::plan(
    const SplitRequest& request, const SetAside& own_way,
    const std::function<ValidationPlan(const SplitRequest& rest)>& split) const {
  SetAside how = own_way;
  const auto* const way = std::find_if(kWays.begin(), kWays.end(),
                                       [&](const Way& one) { return strategy_ == one.strategy; });
  if (way != kWays.end()) {
    how = {way->by};
    if (how.by == SetAside::By::kClass) {
      const std::optional<std::size_t> target = stratified_target(request, stratify_by_);
      if (!target)
        fail_without_classes(request, "\"test_strategy\": \"stratified\"");
      how.target = *target;
    }
  }
  return plan_with_test_rows(request, fraction_, how, split);
}

}  // namespace treadle::validation
