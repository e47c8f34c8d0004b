#include "hold_out.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/core/validation/leaks.h>

#include "stratified_target.h"

namespace treadle::validation {
namespace {

SetAside random(const SplitRequest&, std::optional<std::size_t>) {
  return {SetAside::By::kRow};
}

SetAside by_target(const SplitRequest&, std::optional<std::size_t> target) {
  SetAside how{target ? SetAside::By::kClass : SetAside::By::kRow};
  how.target = target.value_or(0);
  return how;
}

SetAside stratified(const SplitRequest& request, std::optional<std::size_t> target) {
  if (!target)
    fail_without_classes(request, "\"strategy\": \"stratified\"");
  const std::vector<std::vector<std::int64_t>> classes = rows_of_classes(request, *target);
  for (std::size_t c = 0; c < classes.size(); ++c) {
    if (classes[c].size() == 1) {
      throw DataError("class " + quote_text(request.targets[*target].class_names[c]) +
                      " has 1 row, which cannot be in both parts; set \"strategy\": \"random\"");
    }
  }
  return by_target(request, target);
}

SetAside chronological(const SplitRequest&, std::optional<std::size_t>) {
  return {SetAside::By::kTime};
}

struct Strategy {
  const char* name;
  SetAside (*choose)(const SplitRequest&, std::optional<std::size_t>);
  bool stratifies = false;
};
constexpr std::array kStrategies = {Strategy{"auto", by_target, true}, Strategy{"random", random},
                                    Strategy{"stratified", stratified, true},
                                    Strategy{"chronological", chronological}};

Fold fold_of(const SplitRequest& request, std::int64_t count, const SetAside& how) {
  Fold fold;
  fold.name = "hold-out";
  fold.validation = rows_set_aside(request, count, how);
  if (how.by == SetAside::By::kTime) {
    const RowList all = rows_in_time(request);
    fold.training = all.part(0, all.size() - fold.validation.size());
  } else {
    fold.training = all_rows_but(request.rows, fold.validation);
  }
  return fold;
}

}  // namespace

HoldOut::HoldOut(const Config& config)
    : fraction_(config.get_or("fraction", 0.2)),
      rows_(config.find<std::int64_t>("rows")),
      stratify_by_(config.find<std::string>("stratify_by")),
      test_(config, stratify_by_),
      seed_(config) {
  const auto name = config.get_or("strategy", std::string("auto"));
  const auto* const found =
      std::find_if(kStrategies.begin(), kStrategies.end(),
                   [&](const Strategy& strategy) { return name == strategy.name; });
  if (found == kStrategies.end())
    config.fail("strategy", "must be auto, random, stratified or chronological");
  choose_ = found->choose;
  takes_any_ = name == kStrategies.front().name;
  if (rows_ && config.has("fraction"))
    config.fail("fraction", "has no effect beside \"rows\"; leave one of them out");
  if (stratify_by_ && !found->stratifies && !test_.is_stratified())
    config.fail("stratify_by", "has no effect with \"strategy\": " + quote_text(name));
  if (!rows_ && fraction_ + test_.fraction() >= 1) {
    config.fail("test_fraction",
                "and \"fraction\" add up to all rows or more, which leaves none to train on");
  }
}

HoldOut::~HoldOut() = default;

// A fraction of all rows, those for the test among them: "fraction" and "test_fraction" add up.
std::int64_t HoldOut::count_of(std::int64_t all, std::int64_t rest) const {
  if (!rows_) {
    const auto share = std::llround(fraction_ * static_cast<double>(all));
    return std::clamp<std::int64_t>(share, 1, rest - 1);
  }
  if (*rows_ >= rest) {
    throw DataError("\"rows\": " + std::to_string(*rows_) +
                    " leaves none for training: expected fewer than the " + std::to_string(rest) +
                    " rows");
  }
  return *rows_;
}

ValidationPlan HoldOut::do_plan(const SplitRequest& given) const {
  const SplitRequest request = seed_.in(given);
  const auto how_for = [&](const SplitRequest& rows) {
    return choose_(rows, stratified_target(rows, stratify_by_));
  };
  ValidationPlan plan = test_.plan(request, how_for(request), [&](const SplitRequest& rest) {
    ValidationPlan split;
    split.folds.push_back(fold_of(rest, count_of(request.rows, rest.rows), how_for(rest)));
    return split;
  });
  // Samples at the border of two parts in time share rows of the data.
  return how_for(request).by == SetAside::By::kTime ? purged(request, std::move(plan)) : plan;
}

// Its first rows are the oldest, so nothing but "auto" and "rows" makes sense.
std::int64_t HoldOut::do_first_rows_of_stream() const {
  if (!rows_ || !takes_any_ || test_.has_any()) {
    throw DataError(
        "the data can only be read in order, so its number of rows is not known to the "
        "validation: give the number of first rows to keep, {\"use\": \"hold_out\", \"rows\": "
        "1000}, "
        "without a strategy or a test part");
  }
  return *rows_;
}

}  // namespace treadle::validation
