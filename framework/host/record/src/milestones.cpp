#include <treadle/host/record/milestones.h>

#include <algorithm>
#include <cmath>

namespace treadle {
namespace {

constexpr int kLevels = 10;

struct Point {
  double value = 0;
  std::int64_t epoch = 0;
  double seconds = 0;
};

const Number* number_in(const EpochSummary& epoch, const std::string& name) {
  if (name == "loss")
    return epoch.val_loss ? &*epoch.val_loss : nullptr;
  for (const MetricValue& metric : epoch.metrics) {
    if (metric.name == name)
      return &metric.value;
  }
  return nullptr;
}

std::vector<Point> points_of(const TrainingCurve& curve, const std::string& name) {
  std::vector<Point> points;
  double seconds = 0;
  for (const EpochSummary& epoch : curve.epochs) {
    seconds += epoch.seconds;
    const Number* const number = number_in(epoch, name);
    if (number != nullptr && number->is_known())
      points.push_back({number->value(), epoch.epoch, seconds});
  }
  return points;
}

}  // namespace

Milestones milestones_of(const TrainingCurve& curve, const MetricValue& metric) {
  Milestones milestones{metric.name};
  const std::vector<Point> points = points_of(curve, metric.name);
  if (points.empty())
    return milestones;
  const bool is_higher_better = metric.direction == Direction::kHigherIsBetter;
  const auto goodness = [&](const Point& point) {
    return is_higher_better ? point.value : -point.value;
  };
  const auto is_share = [](const Point& point) { return point.value >= 0 && point.value <= 1; };
  milestones.are_shares = !is_higher_better || !std::all_of(points.begin(), points.end(), is_share);
  const double first = milestones.are_shares ? goodness(points.front()) : 0;
  double best = milestones.are_shares ? first : 1;
  for (const Point& point : points)
    best = std::max(best, goodness(point));
  for (int i = 1; i <= kLevels; ++i) {
    const double level = static_cast<double>(i) / kLevels;
    // The best itself is reached, whatever rounding makes of the way to it.
    const double needed = i == kLevels ? best : first + level * (best - first);
    const auto reached = std::find_if(points.begin(), points.end(), [&](const Point& point) {
      return goodness(point) >= needed;
    });
    if (reached == points.end())
      break;
    milestones.reached.push_back({level, reached->value, reached->epoch, reached->seconds});
  }
  return milestones;
}

}  // namespace treadle
