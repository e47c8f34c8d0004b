#include "parzen.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace treadle::tuners {
namespace {

constexpr double kSmallest = -std::numeric_limits<double>::infinity();
// Kernels whose share of a density is below e^-50 are left out of it: together they are less than
// half a unit in its last place.
constexpr double kNegligible = 50;
// Continuous axes that are computed between two looks at whether any kernel of a block is left.
constexpr std::size_t kAxesAtOnce = 6;

/// Some kernels of one continuous axis.
constexpr std::size_t kBlock = 32;
struct Block {
  std::array<double, kBlock> mean;
  std::array<double, kBlock> precision;
  std::array<double, kBlock> log_norm;
};

void add_log_kernels(const Block& block, double x, std::array<double, kBlock>& sums) {
  // Without overlap the compiler computes several at once.
  const double* __restrict const mean = block.mean.data();
  const double* __restrict const precision = block.precision.data();
  const double* __restrict const log_norm = block.log_norm.data();
  double* __restrict const sum = sums.data();
  for (std::size_t k = 0; k < kBlock; ++k) {
    const double difference = x - mean[k];
    sum[k] += log_norm[k] - precision[k] * (difference * difference);
  }
}

// The standard normal distribution between a and b, exact in both tails.
double normal_mass(double a, double b) {
  constexpr double kScale = 1 / std::numbers::sqrt2;
  if (a > 0)
    return 0.5 * (std::erfc(a * kScale) - std::erfc(b * kScale));
  if (b < 0)
    return 0.5 * (std::erfc(-b * kScale) - std::erfc(-a * kScale));
  return 0.5 * (std::erf(b * kScale) - std::erf(a * kScale));
}

double log_mass(double mean, double deviation, double low, double high) {
  return std::log(normal_mass((low - mean) / deviation, (high - mean) / deviation));
}

double log_sum_exp(const std::vector<double>& values) {
  const double most = *std::max_element(values.begin(), values.end());
  if (most == kSmallest)
    return most;
  double sum = 0;
  for (const double value : values)
    sum += std::exp(value - most);
  return most + std::log(sum);
}

}  // namespace

Axis::Axis(const Dimension& dimension)
    : dimension_(dimension),
      kind_(dimension.kind == Dimension::Kind::kChoice ? Kind::kCategorical
            : dimension.count() > 0                    ? Kind::kStepped
                                                       : Kind::kContinuous) {
  if (kind_ == Kind::kCategorical) {
    choices_ = dimension.choices.size();
    return;
  }
  low_ = kind_ == Kind::kStepped ? interval(dimension.low).first : coordinate(dimension.low);
  high_ = kind_ == Kind::kStepped ? interval(dimension.high).second : coordinate(dimension.high);
}

double Axis::emphasis(std::size_t choice) const {
  return dimension_.weights.empty() ? 1 : dimension_.share(choice) * static_cast<double>(choices_);
}

double Axis::draw(RandomBits& bits) const {
  return dimension_.weights.empty() ? static_cast<double>(bits.below(choices_))
                                    : dimension_.from_unit(bits.uniform());
}

double Axis::coordinate(double value) const {
  return dimension_.log ? std::log(value) : value;
}

std::pair<double, double> Axis::interval(double value) const {
  const double half = (dimension_.step == 0 ? 1 : dimension_.step) / 2;
  return {coordinate(value - half), coordinate(value + half)};
}

double Axis::value(double coordinate) const {
  return dimension_.nearest(dimension_.log ? std::exp(coordinate) : coordinate);
}

double ParzenMixture::mean(std::size_t axis, std::size_t kernel) const {
  return table_->coordinate(axis,
                            kernel < members_.size() ? members_[kernel] : ParzenTable::kPrior);
}

double ParzenMixture::deviation(std::size_t axis, std::size_t kernel) const {
  const Axis& of = table_->axes_[axis];
  return kernel < members_.size() ? table_->sides_[side_].axes[axis].deviation[members_[kernel]]
                                  : of.high() - of.low();
}

std::vector<double> ParzenMixture::sample(RandomBits& bits) const {
  const double drawn = bits.uniform();
  std::size_t kernel = 0;
  for (double sum = weights_[0]; kernel + 1 < kernels() && sum <= drawn; sum += weights_[kernel])
    ++kernel;
  std::vector<double> values(table_->axes_.size());
  for (std::size_t a = 0; a < values.size(); ++a) {
    const Axis& axis = table_->axes_[a];
    if (axis.kind() == Axis::Kind::kCategorical) {
      // The share of the observed choice above what it has anyway; the rest is by weight.
      const double excess = kernel == members_.size() ? 0 : categorical_[a].excess;
      const bool is_observed = bits.uniform() < excess;
      const double any = axis.draw(bits);
      values[a] = is_observed ? mean(a, kernel) : any;
      continue;
    }
    // The mean is in the range, and the deviation at most its length: a third of all draws or more
    // are within.
    const double centre = mean(a, kernel);
    const double width = deviation(a, kernel);
    double coordinate = 0;
    do {
      coordinate = centre + width * bits.normal();
    } while (coordinate < axis.low() || coordinate > axis.high());
    values[a] = axis.value(coordinate);
  }
  return values;
}

inline double ParzenMixture::log_kernel(std::size_t axis, std::size_t observation, double at,
                                        const std::pair<double, double>& interval) const {
  const ParzenTable::Kernels& kernels = table_->sides_[side_].axes[axis];
  const double mean = table_->coordinates_[axis][observation];
  const Axis::Kind kind = table_->axes_[axis].kind();
  if (kind == Axis::Kind::kContinuous) {
    return kernels.log_norm[observation] -
           kernels.precision[observation] * ((at - mean) * (at - mean));
  }
  if (kind == Axis::Kind::kStepped) {
    return kernels.log_norm[observation] +
           log_mass(mean, kernels.deviation[observation], interval.first, interval.second);
  }
  const Categorical& of = categorical_[axis];
  const auto choice = static_cast<std::size_t>(at);
  return at == mean ? of.log_hit[choice] : of.log_miss[choice];
}

double ParzenMixture::log_prior(std::size_t axis, double at,
                                const std::pair<double, double>& interval) const {
  const Axis& of = table_->axes_[axis];
  if (of.kind() == Axis::Kind::kCategorical) {
    return std::log(of.emphasis(static_cast<std::size_t>(at))) -
           std::log(static_cast<double>(of.choices()));
  }
  const double mean = 0.5 * (of.low() + of.high());
  const double range = of.high() - of.low();
  const double log_norm = table_->sides_[side_].axes[axis].log_norm_of_prior;
  if (of.kind() == Axis::Kind::kStepped)
    return log_norm + log_mass(mean, range, interval.first, interval.second);
  return log_norm - 0.5 / (range * range) * ((at - mean) * (at - mean));
}

std::vector<double> ParzenMixture::log_densities(
    std::span<const std::vector<double>> points) const {
  const std::vector<std::size_t>& order = table_->order_;
  const std::size_t axes = order.size();
  std::size_t continuous = 0;
  while (continuous < axes && table_->axes_[order[continuous]].kind() == Axis::Kind::kContinuous)
    ++continuous;
  // The most that the axes from position i of the order on can add.
  std::vector<double> rest(axes + 1, 0);
  for (std::size_t i = axes; i-- > 0;)
    rest[i] = rest[i + 1] + most_[order[i]];

  struct Candidate {
    std::vector<double> at;  // in the order of the axes
    std::vector<std::pair<double, double>> intervals;
    double least = 0;          // kernels below it are negligible beside one of those kept
    std::vector<double> kept;  // log densities of kernels, the prior's first
  };
  std::vector<Candidate> candidates(points.size());
  for (std::size_t c = 0; c < points.size(); ++c) {
    Candidate& candidate = candidates[c];
    candidate.at.resize(axes);
    candidate.intervals.resize(axes);
    double prior = log_weights_.back();
    for (std::size_t i = 0; i < axes; ++i) {
      const Axis& axis = table_->axes_[order[i]];
      const double value = points[c][order[i]];
      candidate.at[i] = axis.kind() == Axis::Kind::kCategorical ? value : axis.coordinate(value);
      if (axis.kind() == Axis::Kind::kStepped)
        candidate.intervals[i] = axis.interval(value);
      prior += log_prior(order[i], candidate.at[i], candidate.intervals[i]);
    }
    candidate.least = prior - kNegligible;
    candidate.kept.push_back(prior);
  }

  // Kernels in blocks that stay in the nearest cache, whose length the compiler knows. The last
  // first: the newest trials are the most like the candidates, and make others negligible.
  std::vector<Block> blocks(continuous);
  std::array<double, kBlock> sums{};
  for (std::size_t block = (members_.size() + kBlock - 1) / kBlock; block-- > 0;) {
    const std::size_t begin = block * kBlock;
    const std::size_t length = std::min(kBlock, members_.size() - begin);
    for (std::size_t i = 0; i < continuous; ++i) {
      const ParzenTable::Kernels& kernels = table_->sides_[side_].axes[order[i]];
      for (std::size_t k = 0; k < length; ++k) {
        const std::size_t member = members_[begin + k];
        blocks[i].mean[k] = table_->coordinates_[order[i]][member];
        blocks[i].precision[k] = kernels.precision[member];
        blocks[i].log_norm[k] = kernels.log_norm[member];
      }
    }
    for (Candidate& candidate : candidates) {
      std::copy_n(log_weights_.begin() + static_cast<std::ptrdiff_t>(begin), length, sums.begin());
      bool is_negligible = false;
      for (std::size_t i = 0; i < continuous && !is_negligible;) {
        const std::size_t end = std::min(i + kAxesAtOnce, continuous);
        for (; i < end; ++i)
          add_log_kernels(blocks[i], candidate.at[i], sums);
        const double most =
            *std::max_element(sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(length));
        is_negligible = most + rest[i] < candidate.least;
      }
      if (is_negligible)
        continue;
      for (std::size_t k = 0; k < length; ++k) {
        double sum = sums[k];
        std::size_t i = continuous;
        for (; i < axes && sum + rest[i] >= candidate.least; ++i)
          sum += log_kernel(order[i], members_[begin + k], candidate.at[i], candidate.intervals[i]);
        if (i == axes && sum >= candidate.least) {
          candidate.kept.push_back(sum);
          candidate.least = std::max(candidate.least, sum - kNegligible);
        }
      }
    }
  }
  std::vector<double> densities;
  densities.reserve(points.size());
  for (const Candidate& candidate : candidates)
    densities.push_back(log_sum_exp(candidate.kept));
  return densities;
}

ParzenTable::ParzenTable(std::vector<Axis> axes, double min_bandwidth_factor)
    : axes_(std::move(axes)), min_bandwidth_factor_(min_bandwidth_factor) {
  coordinates_.resize(axes_.size());
  sorted_.assign(axes_.size(), {kPrior});
  sides_.resize(2);
  for (SideKernels& side : sides_)
    side.axes.resize(axes_.size());
  for (const Axis::Kind kind :
       {Axis::Kind::kContinuous, Axis::Kind::kCategorical, Axis::Kind::kStepped}) {
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      if (axes_[a].kind() == kind)
        order_.push_back(a);
    }
  }
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    const Axis& axis = axes_[a];
    if (axis.kind() == Axis::Kind::kCategorical)
      continue;
    for (SideKernels& side : sides_) {
      side.axes[a].log_norm_of_prior =
          log_norm(a, 0.5 * (axis.low() + axis.high()), axis.high() - axis.low());
    }
  }
}

double ParzenTable::coordinate(std::size_t axis, std::size_t observation) const {
  return observation == kPrior ? 0.5 * (axes_[axis].low() + axes_[axis].high())
                               : coordinates_[axis][observation];
}

double ParzenTable::log_norm(std::size_t axis, double mean, double deviation) const {
  const double of_range = -log_mass(mean, deviation, axes_[axis].low(), axes_[axis].high());
  return axes_[axis].kind() == Axis::Kind::kStepped
             ? of_range
             : of_range - std::log(deviation * std::sqrt(2 * std::numbers::pi));
}

// By coordinate, then by number; the prior last among equals.
bool ParzenTable::is_before(std::size_t axis, std::size_t a, std::size_t b) const {
  const double at_a = coordinate(axis, a);
  const double at_b = coordinate(axis, b);
  if (at_a != at_b || a == kPrior)
    return at_a < at_b;
  return b == kPrior || numbers_[a] < numbers_[b];
}

void ParzenTable::add(std::int64_t number, std::span<const double> values) {
  const std::size_t added = size();
  numbers_.push_back(number);
  for (SideKernels& side : sides_)
    side.is_member.push_back(false);
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    const bool is_categorical = axes_[a].kind() == Axis::Kind::kCategorical;
    coordinates_[a].push_back(is_categorical ? values[a] : axes_[a].coordinate(values[a]));
    if (is_categorical)
      continue;
    for (SideKernels& side : sides_) {
      side.axes[a].deviation.push_back(0);
      side.axes[a].precision.push_back(0);
      side.axes[a].log_norm.push_back(0);
    }
    const auto place =
        std::partition_point(sorted_[a].begin(), sorted_[a].end(),
                             [&](std::size_t other) { return is_before(a, other, added); });
    sorted_[a].insert(place, added);
  }
}

ParzenMixture ParzenTable::mixture(Side side, std::vector<std::size_t> members,
                                   std::span<const double> weights) {
  const auto count = static_cast<double>(members.size());
  ParzenMixture mixture;
  mixture.table_ = this;
  mixture.side_ = side;
  mixture.weights_.assign(weights.begin(), weights.end());
  mixture.weights_.push_back(1);
  const double total = std::accumulate(mixture.weights_.begin(), mixture.weights_.end(), 0.0);
  double last_weight = -1;
  double last_log = 0;
  for (double& weight : mixture.weights_) {
    weight /= total;
    if (weight != last_weight) {
      last_weight = weight;
      last_log = std::log(weight);
    }
    mixture.log_weights_.push_back(last_log);
  }

  // Which observations have come or gone since the last estimator of this side. Deviations have
  // bounds that depend on their number, until it is large.
  SideKernels& kernels = sides_[side];
  const bool same_bounds = std::min(100.0, 2 + static_cast<double>(kernels.members.size())) ==
                           std::min(100.0, 2 + count);
  std::vector<bool> is_member(size(), false);
  std::vector<std::size_t> changed;
  for (const std::size_t member : members) {
    is_member[member] = true;
    if (!kernels.is_member[member])
      changed.push_back(member);
  }
  for (const std::size_t member : kernels.members) {
    if (!is_member[member])
      changed.push_back(member);
  }
  kernels.is_member = std::move(is_member);
  kernels.members = members;

  mixture.categorical_.resize(axes_.size());
  mixture.most_.assign(axes_.size(), 0);
  const double share = 1 / (count + 1);
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    const Axis& axis = axes_[a];
    if (axis.kind() == Axis::Kind::kCategorical) {
      const double sum = 1 + static_cast<double>(axis.choices()) * share;
      ParzenMixture::Categorical& of = mixture.categorical_[a];
      for (std::size_t choice = 0; choice < axis.choices(); ++choice) {
        const double miss = axis.emphasis(choice) * share;
        of.log_hit.push_back(std::log((1 + miss) / sum));
        of.log_miss.push_back(std::log(miss / sum));
      }
      of.excess = std::exp(of.log_hit.front()) - std::exp(of.log_miss.front());
      continue;
    }
    if (same_bounds && changed.size() * 8 < members.size())
      refresh(kernels, a, changed);
    else
      refresh_all(kernels, a);
    if (axis.kind() == Axis::Kind::kContinuous) {
      const std::vector<double>& log_norms = kernels.axes[a].log_norm;
      double most = kSmallest;
      for (const std::size_t member : members)
        most = std::max(most, log_norms[member]);
      mixture.most_[a] = most;
    }
  }
  mixture.members_ = std::move(members);
  return mixture;
}

void ParzenTable::set(SideKernels& side, std::size_t axis, std::size_t observation, double left,
                      double right) {
  const double range = axes_[axis].high() - axes_[axis].low();
  const double share = 1 / std::min(100.0, 2 + static_cast<double>(side.members.size()));
  const double least =
      range * (&side == &sides_[kBelow] ? std::min(min_bandwidth_factor_, share) : share);
  const double deviation = std::min(std::max(std::max(left, right), least), range);
  Kernels& kernels = side.axes[axis];
  if (kernels.deviation[observation] == deviation)
    return;
  kernels.deviation[observation] = deviation;
  kernels.precision[observation] = 0.5 / (deviation * deviation);
  kernels.log_norm[observation] = log_norm(axis, coordinates_[axis][observation], deviation);
}

void ParzenTable::refresh_all(SideKernels& side, std::size_t axis) {
  // Each is set when the next is known. The outermost have one neighbour.
  std::size_t open = kPrior;
  bool has_open = false;
  double open_at = 0;
  double left = 0;
  for (const std::size_t observation : sorted_[axis]) {
    if (observation != kPrior && !side.is_member[observation])
      continue;
    const double here = coordinate(axis, observation);
    if (has_open) {
      if (open != kPrior)
        set(side, axis, open, left, here - open_at);
      left = here - open_at;
    }
    open = observation;
    open_at = here;
    has_open = true;
  }
  if (open != kPrior)
    set(side, axis, open, left, 0);
}

void ParzenTable::refresh(SideKernels& side, std::size_t axis,
                          const std::vector<std::size_t>& changed) {
  const std::vector<std::size_t>& sorted = sorted_[axis];
  const auto is_in = [&](std::size_t observation) {
    return observation == kPrior || side.is_member[observation];
  };
  const std::size_t none = sorted.size();
  const auto before = [&](std::size_t place) {
    while (place-- > 0) {
      if (is_in(sorted[place]))
        return place;
    }
    return none;
  };
  const auto after = [&](std::size_t place) {
    while (++place < none) {
      if (is_in(sorted[place]))
        break;
    }
    return place;
  };
  const auto set_at = [&](std::size_t place) {
    if (place == none || sorted[place] == kPrior)
      return;
    const double here = coordinates_[axis][sorted[place]];
    const std::size_t left = before(place);
    const std::size_t right = after(place);
    set(side, axis, sorted[place], left == none ? 0 : here - coordinate(axis, sorted[left]),
        right == none ? 0 : coordinate(axis, sorted[right]) - here);
  };
  for (const std::size_t observation : changed) {
    const auto place =
        static_cast<std::size_t>(std::partition_point(sorted.begin(), sorted.end(),
                                                      [&](std::size_t other) {
                                                        return is_before(axis, other, observation);
                                                      }) -
                                 sorted.begin());
    if (is_in(observation))
      set_at(place);
    set_at(before(place));
    set_at(after(place));
  }
}

}  // namespace treadle::tuners
