#include "top_k.h"

#include <limits>
#include <string>

#include <ATen/ops/arange.h>

#include <treadle/base/json_words.h>

#include "positions.h"
#include "target_check.h"

namespace treadle::metrics {
namespace {

constexpr std::int64_t kDefaultK = 2;

/// How many classes stand behind the right one, int64 [N]. A NaN stands behind nothing.
at::Tensor classes_behind(const Positions& positions) {
  const at::Tensor actual = positions.actual().unsqueeze(1);
  const at::Tensor decided = positions.decided().unsqueeze(1);
  const at::Tensor values = positions.predicted().to(at::kDouble);
  const at::Tensor ranks = values.scatter(1, decided, std::numeric_limits<double>::infinity());
  const at::Tensor of_actual = ranks.gather(1, actual);
  const at::Tensor is_later = at::arange(values.size(1)).unsqueeze(0).gt(actual);
  return ranks.lt(of_actual).logical_or(ranks.eq(of_actual).logical_and(is_later)).sum(1);
}

}  // namespace

TopKAccuracy::TopKAccuracy(const Config& config)
    : config_(config), k_(config.get_or<std::int64_t>("k", kDefaultK)) {}

void TopKAccuracy::do_start(const TargetSpec& target) {
  expect_classes("top_k_accuracy", target);
  if (k_ < 1 || k_ >= target.class_count()) {
    config_.fail("k", "is " + std::to_string(k_) + ", but the target " + quote_text(target.name) +
                          " has " + std::to_string(target.class_count()) +
                          " classes, of which each would be among the first; it must be at least "
                          "1 and below the number of classes");
  }
}

void TopKAccuracy::do_reset() {
  hits_ = 0;
  weight_ = 0;
}

void TopKAccuracy::do_update(const Prediction& prediction, const TargetBatch& target) {
  const Positions positions(prediction, target);
  const std::int64_t fewest = positions.predicted().size(1) - k_;
  const at::Tensor hits = classes_behind(positions).ge(fewest).to(at::kDouble);
  hits_ += weighted_sum(hits, positions.weights()).item<double>();
  weight_ += positions.total_weight();
}

void TopKAccuracy::do_merge(const MetricComputer& other) {
  const auto& theirs = static_cast<const TopKAccuracy&>(other);
  hits_ += theirs.hits_;
  weight_ += theirs.weight_;
}

MetricResult TopKAccuracy::do_compute() const {
  return {{{"top_k_accuracy", weighted_mean(hits_, weight_), Direction::kHigherIsBetter}}, {}};
}

StateDict TopKAccuracy::do_state() const {
  StateDict state;
  state.put_number("hits", hits_);
  state.put_number("weight", weight_);
  return state;
}

void TopKAccuracy::do_load_state(const StateDict& state) {
  hits_ = state.number("hits");
  weight_ = state.number("weight");
}

}  // namespace treadle::metrics
