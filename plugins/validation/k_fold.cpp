#include "k_fold.h"

#include <algorithm>
#include <string>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "stratified_target.h"

namespace treadle::validation {
namespace {

constexpr const char* kFoldStream = "k_fold";

void check_class_sizes(const TargetSpec& target, std::int64_t folds,
                       const std::vector<std::vector<std::int64_t>>& classes) {
  for (std::size_t c = 0; c < classes.size(); ++c) {
    const auto size = static_cast<std::int64_t>(classes[c].size());
    if (size == 0 || size >= folds)
      continue;
    throw DataError("class " + quote_text(target.class_names[c]) + " has " + std::to_string(size) +
                    (size == 1 ? " row" : " rows") + ", but " + std::to_string(folds) +
                    " folds require at least one of each class per fold; take fewer folds or set "
                    "\"stratify\": false");
  }
}

}  // namespace

KFold::KFold(const Config& config)
    : folds_(config.get_or("folds", std::int64_t{5})),
      shuffle_(config.get_or("shuffle", true)),
      stratify_(stratify_in(config)),
      stratify_by_(config.find<std::string>("stratify_by")),
      refit_(config.get_or("refit", true)),
      test_(config, stratify_by_),
      seed_(config) {
  if (stratify_by_ && !stratify_.value_or(true) && !test_.is_stratified())
    config.fail("stratify_by", "has no effect with \"stratify\": false");
  test_.expect_model(config, refit_);
}

KFold::~KFold() = default;

std::optional<std::size_t> KFold::target_in(const SplitRequest& request) const {
  const std::optional<std::size_t> target =
      stratify_.value_or(true) ? stratified_target(request, stratify_by_) : std::nullopt;
  if (stratify_.value_or(false) && !target)
    fail_without_classes(request, "\"stratify\": true");
  return target;
}

ValidationPlan KFold::do_plan(const SplitRequest& request) const {
  const std::optional<std::size_t> target = target_in(request);
  const SetAside::By by = target ? SetAside::By::kClass : SetAside::By::kRow;
  return test_.plan(seed_.in(request), {by, shuffle_, target.value_or(0)},
                    [&](const SplitRequest& rest) { return folds_of(rest); });
}

ValidationPlan KFold::folds_of(const SplitRequest& request) const {
  if (folds_ > request.rows) {
    throw DataError("\"folds\": " + std::to_string(folds_) +
                    " requires at least as many rows, got " + std::to_string(request.rows) +
                    " rows");
  }
  const std::optional<std::size_t> target = target_in(request);
  const std::vector<RowList> blocks =
      target ? stratified_blocks(request, *target) : blocks_of(request);
  ValidationPlan plan;
  if (refit_)
    plan.refit = refit_on(all_rows_but(request.rows, {}));
  for (const RowList& block : blocks) {
    Fold fold;
    fold.name = "fold-" + std::to_string(plan.folds.size() + 1);
    fold.validation = block;
    fold.training = all_rows_but(request.rows, block);
    plan.folds.push_back(std::move(fold));
  }
  return plan;
}

// Consecutive blocks of the rows, or of the shuffled rows; the first rows % folds have one more.
std::vector<RowList> KFold::blocks_of(const SplitRequest& request) const {
  RowList order = RowList::range(0, request.rows);
  if (shuffle_) {
    std::vector<std::int64_t> shuffled = order.numbers();
    request.random.bits(kFoldStream).shuffle(shuffled);
    order = std::move(shuffled);
  }
  std::vector<RowList> blocks;
  std::size_t next = 0;
  for (std::int64_t fold = 0; fold < folds_; ++fold) {
    const auto size =
        static_cast<std::size_t>(request.rows / folds_ + (fold < request.rows % folds_ ? 1 : 0));
    RowList block = order.part(next, size);
    next += size;
    if (shuffle_) {
      std::vector<std::int64_t> sorted = block.numbers();
      std::sort(sorted.begin(), sorted.end());
      block = std::move(sorted);
    }
    blocks.push_back(std::move(block));
  }
  return blocks;
}

// scikit-learn's way: with all rows sorted by class, every folds-th belongs to one fold. That gives
// the number of rows of each class in each fold; both differ by one at most. Which rows of the
// class they are is another matter: neighbours, or any. Classes count in the order of their first
// row.
std::vector<RowList> KFold::stratified_blocks(const SplitRequest& request,
                                              std::size_t target) const {
  const std::vector<std::vector<std::int64_t>> classes = rows_of_classes(request, target);
  check_class_sizes(request.targets[target], folds_, classes);
  std::vector<std::size_t> order;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    if (!classes[c].empty())
      order.push_back(c);
  }
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return classes[a].front() < classes[b].front(); });
  std::vector<std::int64_t> fold_of(static_cast<std::size_t>(request.rows));
  std::int64_t position = 0;
  for (const std::size_t c : order) {
    std::vector<std::int64_t> folds;
    for (std::size_t i = 0; i < classes[c].size(); ++i)
      folds.push_back(position++ % folds_);
    std::sort(folds.begin(), folds.end());
    if (shuffle_)
      request.random.bits(kFoldStream, {c}).shuffle(folds);
    for (std::size_t i = 0; i < folds.size(); ++i)
      fold_of[static_cast<std::size_t>(classes[c][i])] = folds[i];
  }
  std::vector<RowList::Builder> blocks(static_cast<std::size_t>(folds_));
  for (std::int64_t row = 0; row < request.rows; ++row)
    blocks[static_cast<std::size_t>(fold_of[static_cast<std::size_t>(row)])].add(row);
  std::vector<RowList> lists;
  for (RowList::Builder& block : blocks)
    lists.push_back(block.done());
  return lists;
}

}  // namespace treadle::validation
