#include "class_scores.h"

#include <string>

namespace treadle::metrics {
namespace {

Share f_share(const Counts& counts, double beta) {
  const double square = beta * beta;
  return {(1 + square) * counts.hits, square * counts.actual + counts.predicted};
}

}  // namespace

const ClassScore kPrecision{"precision",
                            [](const Counts& counts, double) -> Share {
                              return {counts.hits, counts.predicted};
                            },
                            "no row is predicted to be of class "};
const ClassScore kRecall{"recall",
                         [](const Counts& counts, double) -> Share {
                           return {counts.hits, counts.actual};
                         },
                         "no row is of class "};
const ClassScore kF1{"f1", [](const Counts& counts, double) { return f_share(counts, 1); },
                     "no row is of, or predicted to be of, class "};
const ClassScore kFBeta{"f_beta", &f_share, "no row is of, or predicted to be of, class "};
const ClassScore kSpecificity{"specificity",
                              [](const Counts& counts, double) -> Share {
                                const double others = counts.all - counts.actual;
                                return {others - (counts.predicted - counts.hits), others};
                              },
                              "all rows are of class "};

ClassScoreMetric::ClassScoreMetric(const ClassScore& score, const Config& config)
    : ClassCountsMetric(score.name, /*takes_labels=*/true),
      score_(score),
      beta_(config.get_or<double>("beta", 2)),
      choice_(config) {}

void ClassScoreMetric::do_start(const TargetSpec& target) {
  ClassCountsMetric::do_start(target);
  choice_.start(target);
}

Number ClassScoreMetric::of_class(const std::vector<Counts>& counts, std::size_t index) const {
  const Share share = score_.share(counts[index], beta_);
  return share.whole > 0 ? Number(share.part / share.whole)
                         : Number::undefined(std::string(score_.nothing) + quoted_class(index));
}

Number ClassScoreMetric::average(const std::vector<Counts>& counts) const {
  const bool is_micro = choice_.average() == ClassChoice::Average::kMicro;
  const bool is_weighted = choice_.average() == ClassChoice::Average::kWeighted;
  double sum = 0;
  double weight = 0;
  double wholes = 0;
  Number last;
  for (std::size_t c = 0; c < counts.size(); ++c) {
    if (!is_of_labels() && !counts[c].occurs())
      continue;
    const Share share = score_.share(counts[c], beta_);
    const Number one = of_class(counts, c);
    const double of_one = is_micro ? share.whole : is_weighted ? counts[c].actual : 1;
    weight += of_one;
    wholes += share.whole;
    if (one.is_undefined())
      last = one;
    else
      sum += of_one * one;
  }
  if (wholes == 0)
    return last;
  return weight > 0 ? Number(sum / weight) : Number::undefined("no row has a label");
}

Number ClassScoreMetric::value() const {
  const std::vector<Counts> all = counts();
  if (all.empty() || all.front().all == 0)
    return weighted_mean(0, 0);
  return choice_.one() ? of_class(all, static_cast<std::size_t>(*choice_.one())) : average(all);
}

MetricResult ClassScoreMetric::do_compute() const {
  return {{{choice_.value_name(name()), value(), Direction::kHigherIsBetter}}, {}};
}

}  // namespace treadle::metrics
