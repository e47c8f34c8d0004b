#include "group_k_fold.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <treadle/base/error.h>

#include "stratified_target.h"

namespace treadle::validation {
namespace {

using Rows = std::vector<std::int64_t>;

constexpr const char* kStream = "group_k_fold";

void expect_groups(const SplitRequest& request) {
  if (!request.groups.defined()) {
    throw DataError(
        "validation keeps groups together, but the data has no groups; \"group\" of csv and "
        "\"groups\" of npy name them");
  }
}

/// How the rows of each class are spread over the folds: the standard deviation over the folds of
/// the share of the class, on average over the classes.
class Spread {
 public:
  Spread(std::size_t folds, std::vector<double> of_class)
      : of_class_(std::move(of_class)), counts_(folds, std::vector<double>(of_class_.size(), 0)) {}

  void add(std::size_t fold, const std::vector<double>& rows, double sign = 1) {
    for (std::size_t c = 0; c < rows.size(); ++c)
      counts_[fold][c] += sign * rows[c];
  }
  double value() const {
    double sum = 0;
    const auto folds = static_cast<double>(counts_.size());
    for (std::size_t c = 0; c < of_class_.size(); ++c) {
      double mean = 0;
      for (const std::vector<double>& fold : counts_)
        mean += fold[c] / of_class_[c] / folds;
      double squares = 0;
      for (const std::vector<double>& fold : counts_)
        squares += std::pow(fold[c] / of_class_[c] - mean, 2);
      sum += std::sqrt(squares / folds);
    }
    return sum / static_cast<double>(of_class_.size());
  }
  double rows_in(std::size_t fold) const {
    return std::accumulate(counts_[fold].begin(), counts_[fold].end(), 0.0);
  }

 private:
  std::vector<double> of_class_;
  std::vector<std::vector<double>> counts_;  // by fold and class
};

double deviation(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values)
    squares += (value - mean) * (value - mean);
  return std::sqrt(squares / count);
}

}  // namespace

FoldsOfGroups::FoldsOfGroups(const Config& config)
    : folds_(config.get_or("folds", std::int64_t{5})),
      shuffle_(config.get_or("shuffle", true)),
      refit_(config.get_or("refit", true)),
      test_(config, std::nullopt),
      seed_(config) {
  test_.expect_model(config, refit_);
}

FoldsOfGroups::~FoldsOfGroups() = default;

Rows FoldsOfGroups::order_of(const SplitRequest& request, std::size_t groups) const {
  Rows order(groups);
  std::iota(order.begin(), order.end(), 0);
  if (shuffle_)
    request.random.bits(kStream).shuffle(order);
  return order;
}

ValidationPlan FoldsOfGroups::do_plan(const SplitRequest& request) const {
  expect_groups(request);
  return test_.plan(seed_.in(request), {SetAside::By::kGroup, shuffle_},
                    [&](const SplitRequest& rest) { return folds_of(rest); });
}

ValidationPlan FoldsOfGroups::folds_of(const SplitRequest& request) const {
  const Groups groups = rows_of_groups(request);
  if (folds_ > static_cast<std::int64_t>(groups.size())) {
    throw DataError("\"folds\": " + std::to_string(folds_) +
                    " requires at least as many groups, got " + std::to_string(groups.size()) +
                    " groups");
  }
  const Rows fold_of = do_fold_of_groups(request, groups);
  ValidationPlan plan;
  plan.folds.resize(static_cast<std::size_t>(folds_));
  std::vector<Rows> blocks(plan.folds.size());
  for (std::size_t group = 0; group < groups.size(); ++group) {
    Rows& rows = blocks[static_cast<std::size_t>(fold_of[group])];
    rows.insert(rows.end(), groups[group].begin(), groups[group].end());
  }
  for (std::size_t i = 0; i < plan.folds.size(); ++i) {
    Fold& fold = plan.folds[i];
    fold.name = "fold-" + std::to_string(i + 1);
    std::sort(blocks[i].begin(), blocks[i].end());
    fold.validation = std::move(blocks[i]);
    fold.training = all_rows_but(request.rows, fold.validation);
  }
  if (refit_)
    plan.refit = refit_on(all_rows_but(request.rows, {}));
  return plan;
}

Rows GroupKFold::do_fold_of_groups(const SplitRequest& request, const Groups& groups) const {
  Rows order = order_of(request, groups.size());
  const auto size_of = [&](std::int64_t group) {
    return groups[static_cast<std::size_t>(group)].size();
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return size_of(a) > size_of(b); });
  std::vector<std::size_t> sizes(static_cast<std::size_t>(folds()), 0);
  Rows fold_of(groups.size());
  for (const std::int64_t group : order) {
    const auto lightest = std::min_element(sizes.begin(), sizes.end());
    *lightest += size_of(group);
    fold_of[static_cast<std::size_t>(group)] = lightest - sizes.begin();
  }
  return fold_of;
}

StratifiedGroupKFold::StratifiedGroupKFold(const Config& config)
    : FoldsOfGroups(config), stratify_by_(config.find<std::string>("stratify_by")) {}

StratifiedGroupKFold::~StratifiedGroupKFold() = default;

Rows StratifiedGroupKFold::do_fold_of_groups(const SplitRequest& request,
                                             const Groups& groups) const {
  const std::optional<std::size_t> target = stratified_target(request, stratify_by_);
  if (!target)
    fail_without_classes(request, "\"use\": \"stratified_group_k_fold\"");
  // Classes without rows have no share.
  std::vector<double> of_class;
  std::vector<std::vector<double>> counts(groups.size());
  std::vector<std::size_t> group_of(static_cast<std::size_t>(request.rows));
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (const std::int64_t row : groups[group])
      group_of[static_cast<std::size_t>(row)] = group;
  }
  for (const Rows& rows : rows_of_classes(request, *target)) {
    if (rows.empty())
      continue;
    of_class.push_back(static_cast<double>(rows.size()));
    for (std::vector<double>& count : counts)
      count.push_back(0);
    for (const std::int64_t row : rows)
      counts[group_of[static_cast<std::size_t>(row)]].back() += 1;
  }
  Rows order = order_of(request, groups.size());
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return deviation(counts[static_cast<std::size_t>(a)]) >
           deviation(counts[static_cast<std::size_t>(b)]);
  });
  constexpr double kEqual = 1e-9;  // sums of shares in another order
  Spread spread(static_cast<std::size_t>(folds()), of_class);
  Rows fold_of(groups.size());
  for (const std::int64_t group : order) {
    const std::vector<double>& rows = counts[static_cast<std::size_t>(group)];
    std::size_t best = 0;
    double best_spread = std::numeric_limits<double>::infinity();
    double best_rows = best_spread;
    for (std::size_t fold = 0; fold < static_cast<std::size_t>(folds()); ++fold) {
      spread.add(fold, rows);
      const double value = spread.value();
      spread.add(fold, rows, -1);
      const double size = spread.rows_in(fold);
      const bool is_equal = std::abs(value - best_spread) <= kEqual;
      if (is_equal ? size < best_rows : value < best_spread) {
        best = fold;
        best_spread = value;
        best_rows = size;
      }
    }
    spread.add(best, rows);
    fold_of[static_cast<std::size_t>(group)] = static_cast<std::int64_t>(best);
  }
  return fold_of;
}

LeaveOneGroupOut::LeaveOneGroupOut(const Config& config)
    : refit_(config.get_or("refit", true)), test_(config, std::nullopt), seed_(config) {
  test_.expect_model(config, refit_);
}

LeaveOneGroupOut::~LeaveOneGroupOut() = default;

ValidationPlan LeaveOneGroupOut::do_plan(const SplitRequest& request) const {
  expect_groups(request);
  return test_.plan(seed_.in(request), {SetAside::By::kGroup},
                    [&](const SplitRequest& rest) { return folds_of(rest); });
}

ValidationPlan LeaveOneGroupOut::folds_of(const SplitRequest& request) const {
  std::vector<Rows> groups = rows_of_groups(request);
  if (groups.size() < 2) {
    throw DataError(
        "all rows are of one group, and leaving it out leaves none to train on; expected two "
        "groups or more");
  }
  ValidationPlan plan;
  for (Rows& rows : groups) {
    const auto number = request.groups[rows.front()].item<std::int64_t>();
    Fold fold;
    fold.name = "group-" + std::to_string(number);
    fold.training = all_rows_but(request.rows, rows);
    fold.validation = std::move(rows);
    plan.folds.push_back(std::move(fold));
  }
  if (refit_)
    plan.refit = refit_on(all_rows_but(request.rows, {}));
  return plan;
}

}  // namespace treadle::validation
