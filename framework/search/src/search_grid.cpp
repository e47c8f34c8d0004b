#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/search/search_space.h>

namespace treadle {
namespace {

std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::numeric_limits<std::int64_t>::max() : result;
}

std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? std::numeric_limits<std::int64_t>::max() : result;
}

}  // namespace

SearchGrid::SearchGrid(const SearchSpace& space, std::int64_t points) : space_(&space) {
  TREADLE_EXPECTS(points >= 2, "a range has two ends");
  for (const Dimension& dimension : space.dimensions()) {
    std::vector<double> values;
    const std::int64_t all = dimension.count();
    const bool is_plain_range =
        dimension.kind != Dimension::Kind::kChoice &&
        (dimension.step == 0 ||
         (dimension.kind == Dimension::Kind::kInteger && dimension.step == 1));
    if (is_plain_range && (all == 0 || all > points)) {
      const double first = dimension.log ? std::log(dimension.low) : dimension.low;
      const double last = dimension.log ? std::log(dimension.high) : dimension.high;
      for (std::int64_t i = 0; i < points; ++i) {
        const double share = static_cast<double>(i) / static_cast<double>(points - 1);
        const double at = i == points - 1 ? last : first + share * (last - first);
        values.push_back(dimension.nearest(dimension.log ? std::exp(at) : at));
      }
      values.front() = dimension.low;
      values.back() = dimension.high;
      values.erase(std::unique(values.begin(), values.end()), values.end());
    } else {
      for (std::int64_t i = 0; i < all; ++i)
        values.push_back(dimension.value(i));
    }
    values_.push_back(std::move(values));
  }
  counts_.resize(space.size());
  const auto order = space.order();
  for (std::size_t at = order.size(); at-- > 0;) {
    const std::size_t d = order[at];
    counts_[d] = 0;
    for (const double value : values_[d])
      counts_[d] = sum(counts_[d], below(d, value));
    if (!space.parent(d))
      size_ = product(size_, counts_[d]);
  }
}

std::int64_t SearchGrid::below(std::size_t dimension, double value) const {
  std::int64_t combinations = 1;
  Point point(space_->size());
  point.set(dimension, value);
  for (const std::size_t child : space_->children(dimension)) {
    if (space_->is_enabled(child, point))
      combinations = product(combinations, counts_[child]);
  }
  return combinations;
}

void SearchGrid::fill(std::size_t dimension, std::int64_t index, Point& point) const {
  for (const double value : values_[dimension]) {
    const std::int64_t block = below(dimension, value);
    if (index >= block) {
      index -= block;
      continue;
    }
    point.set(dimension, value);
    const auto children = space_->children(dimension);
    for (std::size_t at = children.size(); at-- > 0;) {
      if (!space_->is_enabled(children[at], point))
        continue;
      fill(children[at], index % counts_[children[at]], point);
      index /= counts_[children[at]];
    }
    return;
  }
}

Point SearchGrid::at(std::int64_t index) const {
  TREADLE_EXPECTS(index >= 0 && index < size_, "the index lies within the grid");
  Point point(space_->size());
  for (std::size_t d = space_->size(); d-- > 0;) {
    if (space_->parent(d))
      continue;
    fill(d, index % counts_[d], point);
    index /= counts_[d];
  }
  return point;
}

}  // namespace treadle
