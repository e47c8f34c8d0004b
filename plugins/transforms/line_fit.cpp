#include "line_fit.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>

namespace treadle::transforms {
namespace {

/// Of at least one sorted value: NumPy's method "linear".
double quantile_of(const std::vector<double>& sorted, double level) {
  const double place = level * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - std::floor(place));
}

}  // namespace

LineFit::~LineFit() = default;

void StatisticsFit::join(const LineFit& more) {
  treadle::transforms::join(columns_, static_cast<const StatisticsFit&>(more).columns_);
}

std::optional<Line> StatisticsFit::line(std::size_t column) const {
  if (columns_[column].count == 0)
    return std::nullopt;
  return line_for_(columns_[column]);
}

void QuantileFit::add(const at::Tensor& values) {
  parts_.push_back(values.clone(at::MemoryFormat::Contiguous));
}

void QuantileFit::join(const LineFit& more) {
  const std::vector<at::Tensor>& parts = static_cast<const QuantileFit&>(more).parts_;
  parts_.insert(parts_.end(), parts.begin(), parts.end());
}

std::optional<Line> QuantileFit::line(std::size_t column) const {
  std::vector<double> sorted;
  for (const at::Tensor& part : parts_) {
    const at::Tensor wide =
        part.select(1, static_cast<std::int64_t>(column)).to(at::kDouble).contiguous();
    const auto* const begin = wide.data_ptr<double>();
    std::copy_if(begin, begin + wide.numel(), std::back_inserter(sorted),
                 [](double value) { return !std::isnan(value); });
  }
  if (sorted.empty())
    return std::nullopt;
  std::sort(sorted.begin(), sorted.end());
  const double distance = quantile_of(sorted, upper_) - quantile_of(sorted, lower_);
  const bool is_constant = distance < 10 * std::numeric_limits<double>::epsilon();
  return Line{quantile_of(sorted, 0.5), is_constant ? 1 : 1 / distance};
}

}  // namespace treadle::transforms
