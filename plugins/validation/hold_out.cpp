#include "hold_out.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "class_rows.h"

namespace treadle::validation {
namespace {

constexpr const char* kHoldOutStream = "hold_out";

Fold fold_with(const SplitRequest& request, std::vector<std::int64_t> validation) {
  std::sort(validation.begin(), validation.end());
  Fold fold;
  fold.training = all_rows_but(request.rows, validation);
  fold.validation = std::move(validation);
  return fold;
}

Fold random(const SplitRequest& request, std::int64_t count, std::optional<std::size_t>) {
  std::vector<std::int64_t> order =
      random_permutation(request.rows, request.random.bits(kHoldOutStream));
  order.resize(static_cast<std::size_t>(count));
  return fold_with(request, std::move(order));
}

// How many rows of each class to validate on: its share rounded down, and one more for those with
// the largest remainders until there are `count`. A class keeps one row to train on.
std::vector<std::int64_t> shares(const std::vector<std::vector<std::int64_t>>& classes,
                                 std::int64_t rows, std::int64_t count) {
  struct Remainder {
    std::int64_t of_share;
    std::size_t class_index;
  };
  std::vector<std::int64_t> taken(classes.size(), 0);
  std::vector<Remainder> remainders;
  std::int64_t left = count;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    const auto size = static_cast<std::int64_t>(classes[c].size());
    taken[c] =
        std::clamp(size * count / rows, std::int64_t{0}, std::max<std::int64_t>(size - 1, 0));
    left -= taken[c];
    if (taken[c] + 1 < size)
      remainders.push_back({size * count % rows, c});
  }
  std::stable_sort(remainders.begin(), remainders.end(),
                   [](const Remainder& a, const Remainder& b) { return a.of_share > b.of_share; });
  for (const Remainder& remainder : remainders) {
    if (left == 0)
      break;
    ++taken[remainder.class_index];
    --left;
  }
  return taken;
}

Fold stratified_where_possible(const SplitRequest& request, std::int64_t count,
                               std::size_t target) {
  std::vector<std::vector<std::int64_t>> classes = rows_of_classes(request, target);
  const std::vector<std::int64_t> taken = shares(classes, request.rows, count);
  std::vector<std::int64_t> validation;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    request.random.bits(kHoldOutStream, {c}).shuffle(classes[c]);
    validation.insert(validation.end(), classes[c].begin(), classes[c].begin() + taken[c]);
  }
  return validation.empty() ? random(request, count, target)
                            : fold_with(request, std::move(validation));
}

Fold stratified(const SplitRequest& request, std::int64_t count,
                std::optional<std::size_t> target) {
  if (!target)
    fail_without_classes(request, "\"strategy\": \"stratified\"");
  const std::vector<std::vector<std::int64_t>> classes = rows_of_classes(request, *target);
  for (std::size_t c = 0; c < classes.size(); ++c) {
    if (classes[c].size() == 1) {
      throw DataError("class " + quote_text(request.targets[*target].class_names[c]) +
                      " has 1 row, which cannot be in both parts; set \"strategy\": \"random\"");
    }
  }
  return stratified_where_possible(request, count, *target);
}

Fold by_target(const SplitRequest& request, std::int64_t count, std::optional<std::size_t> target) {
  return target ? stratified_where_possible(request, count, *target)
                : random(request, count, target);
}

// Without timestamps the rows' own order is that of time.
Fold chronological(const SplitRequest& request, std::int64_t count, std::optional<std::size_t>) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(request.rows));
  std::iota(order.begin(), order.end(), 0);
  if (request.timestamps.defined()) {
    const at::Tensor timestamps = request.timestamps.to(at::kDouble).contiguous();
    const auto* const time = timestamps.data_ptr<double>();
    std::stable_sort(order.begin(), order.end(),
                     [time](std::int64_t a, std::int64_t b) { return time[a] < time[b]; });
  }
  const auto border = order.end() - count;
  Fold fold;
  fold.training.assign(order.begin(), border);
  fold.validation.assign(border, order.end());
  return fold;
}

struct Strategy {
  const char* name;
  Fold (*choose)(const SplitRequest&, std::int64_t, std::optional<std::size_t>);
  bool stratifies = false;
};
constexpr std::array kStrategies = {Strategy{"auto", by_target, true}, Strategy{"random", random},
                                    Strategy{"stratified", stratified, true},
                                    Strategy{"chronological", chronological}};

}  // namespace

HoldOut::HoldOut(const Config& config)
    : fraction_(config.get_or("fraction", 0.2)),
      rows_(config.find<std::int64_t>("rows")),
      stratify_by_(config.find<std::string>("stratify_by")) {
  const auto name = config.get_or("strategy", std::string("auto"));
  const auto* const found =
      std::find_if(kStrategies.begin(), kStrategies.end(),
                   [&](const Strategy& strategy) { return name == strategy.name; });
  if (found == kStrategies.end())
    config.fail("strategy", "must be auto, random, stratified or chronological");
  choose_ = found->choose;
  if (rows_ && config.has("fraction"))
    config.fail("fraction", "has no effect beside \"rows\"; leave one of them out");
  if (stratify_by_ && !found->stratifies)
    config.fail("stratify_by", "has no effect with \"strategy\": " + quote_text(name));
}

HoldOut::~HoldOut() = default;

std::int64_t HoldOut::count_of(std::int64_t rows) const {
  if (!rows_) {
    const auto share = std::llround(fraction_ * static_cast<double>(rows));
    return std::clamp<std::int64_t>(share, 1, rows - 1);
  }
  if (*rows_ >= rows) {
    throw DataError("validation asks for " + std::to_string(*rows_) + " rows, but there are " +
                    std::to_string(rows) + ", and training needs at least one");
  }
  return *rows_;
}

ValidationPlan HoldOut::do_plan(const SplitRequest& request) const {
  Fold fold = choose_(request, count_of(request.rows), stratified_target(request, stratify_by_));
  fold.name = "hold-out";
  ValidationPlan plan;
  plan.folds.push_back(std::move(fold));
  return plan;
}

}  // namespace treadle::validation
