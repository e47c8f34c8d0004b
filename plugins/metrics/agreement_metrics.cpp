#include "agreement_metrics.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

namespace treadle::metrics {
namespace {

/// Of all positions.
struct Totals {
  double all = 0;
  double hits = 0;
  double actual_squares = 0;
  double predicted_squares = 0;
  double products = 0;  // of actual and predicted
  std::size_t actual_classes = 0;
  std::size_t predicted_classes = 0;
  std::size_t an_actual_class = 0;
};

Totals totals_of(const std::vector<Counts>& counts) {
  Totals totals;
  totals.all = counts.empty() ? 0 : counts.front().all;
  for (std::size_t c = 0; c < counts.size(); ++c) {
    const Counts& one = counts[c];
    totals.hits += one.hits;
    totals.actual_squares += one.actual * one.actual;
    totals.predicted_squares += one.predicted * one.predicted;
    totals.products += one.actual * one.predicted;
    totals.predicted_classes += one.predicted > 0 ? 1 : 0;
    if (one.actual > 0) {
      ++totals.actual_classes;
      totals.an_actual_class = c;
    }
  }
  return totals;
}

double unequal_by_chance(const std::vector<Counts>& counts) {
  const Totals totals = totals_of(counts);
  return totals.all * totals.all - totals.products;
}

// |i - j| is the number of k with i <= k < j or j <= k < i.
double distance_by_chance(const std::vector<Counts>& counts) {
  const double all = counts.front().all;
  double sum = 0;
  double actual = 0;
  double predicted = 0;
  for (const Counts& one : counts) {
    actual += one.actual;
    predicted += one.predicted;
    sum += actual * (all - predicted) + predicted * (all - actual);
  }
  return sum;
}

double square_by_chance(const std::vector<Counts>& counts) {
  // Around the middle, where the terms are small.
  const double middle = 0.5 * static_cast<double>(counts.size() - 1);
  double actual_sum = 0;
  double predicted_sum = 0;
  double squares = 0;
  for (std::size_t c = 0; c < counts.size(); ++c) {
    const double place = static_cast<double>(c) - middle;
    actual_sum += place * counts[c].actual;
    predicted_sum += place * counts[c].predicted;
    squares += place * place * (counts[c].actual + counts[c].predicted);
  }
  return counts.front().all * squares - 2 * actual_sum * predicted_sum;
}

constexpr CohenKappa::Disagreement kDisagreements[] = {
    {"none", [](const at::Tensor& distances) { return distances.ne(0).to(at::kDouble); },
     &unequal_by_chance},
    {"linear", [](const at::Tensor& distances) { return distances.abs().to(at::kDouble); },
     &distance_by_chance},
    {"quadratic", [](const at::Tensor& distances) { return distances.to(at::kDouble).square(); },
     &square_by_chance},
};

}  // namespace

MetricResult Mcc::do_compute() const {
  const Totals totals = totals_of(counts());
  Number value = weighted_mean(0, totals.all);
  if (totals.actual_classes == 1) {
    value = Number::undefined("all rows are of class " + quoted_class(totals.an_actual_class));
  } else if (totals.predicted_classes > 1) {
    const double square = totals.all * totals.all;
    const double spread =
        std::sqrt(square - totals.predicted_squares) * std::sqrt(square - totals.actual_squares);
    value = (totals.hits * totals.all - totals.products) / spread;
  }
  return {{{"mcc", value, Direction::kHigherIsBetter}}, {}};
}

MetricResult BalancedAccuracy::do_compute() const {
  double sum = 0;
  double classes = 0;
  for (const Counts& one : counts()) {
    if (one.actual > 0) {
      sum += one.hits / one.actual;
      ++classes;
    }
  }
  return {{{"balanced_accuracy", weighted_mean(sum, classes), Direction::kHigherIsBetter}}, {}};
}

CohenKappa::CohenKappa(const Config& config)
    : ClassCountsMetric("cohen_kappa", /*takes_labels=*/false) {
  const auto name = config.get_or<std::string>("weights", "none");
  disagreement_ = std::find_if(std::begin(kDisagreements), std::end(kDisagreements),
                               [&](const Disagreement& one) { return one.name == name; });
  if (disagreement_ == std::end(kDisagreements))
    config.fail("weights", "must be \"none\", \"linear\" or \"quadratic\"");
}

void CohenKappa::do_reset() {
  ClassCountsMetric::do_reset();
  observed_ = 0;
}

void CohenKappa::do_update(const Prediction& prediction, const TargetBatch& target) {
  ClassCountsMetric::do_update(prediction, target);
  const Positions positions(prediction, target);
  const at::Tensor each = disagreement_->of(positions.decided().sub(positions.actual()));
  observed_ += weighted_sum(each, positions.weights()).item<double>();
}

void CohenKappa::do_merge(const MetricComputer& other) {
  ClassCountsMetric::do_merge(other);
  observed_ += static_cast<const CohenKappa&>(other).observed_;
}

MetricResult CohenKappa::do_compute() const {
  const std::vector<Counts> all = counts();
  const Totals totals = totals_of(all);
  const auto occurring =
      std::count_if(all.begin(), all.end(), [](const Counts& one) { return one.occurs(); });
  Number value = weighted_mean(0, totals.all);
  if (occurring == 1) {
    value = Number::undefined("all rows are of, and predicted to be of, class " +
                              quoted_class(totals.an_actual_class));
  } else if (occurring > 1) {
    value = 1 - observed_ * totals.all / disagreement_->by_chance(all);
  }
  return {{{"cohen_kappa", value, Direction::kHigherIsBetter}}, {}};
}

StateDict CohenKappa::do_state() const {
  StateDict state = ClassCountsMetric::do_state();
  state.put_number("observed", observed_);
  return state;
}

void CohenKappa::do_load_state(const StateDict& state) {
  ClassCountsMetric::do_load_state(state);
  observed_ = state.number("observed");
}

}  // namespace treadle::metrics
