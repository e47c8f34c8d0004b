#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#include <treadle/base/error.h>

#include "synthetic_data.h"

namespace treadle::synthetic {
namespace {

std::vector<std::string> numbered(const char* prefix, std::int64_t first, std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i)
    names.push_back(prefix + std::to_string(first + i));
  return names;
}

MadeRows plane_with_classes(std::int64_t class_count) {
  MadeRows made;
  made.columns = {"x", "y"};
  made.target = "class";
  made.classes = numbered("", 0, class_count);
  return made;
}

}  // namespace

Moons::Moons(const Config& config)
    : SyntheticData(config, "moons"),
      row_count_(row_count(config, 1000)),
      noise_(config.get_or("noise", 0.1)) {}

MadeRows Moons::make_rows(RandomBits bits) const {
  MadeRows made = plane_with_classes(2);
  for (std::int64_t row = 0; row < row_count_; ++row) {
    const bool lower = row % 2 == 1;
    // Evenly spaced over the half circle, ends included. The upper moon has the odd row.
    const std::int64_t points = (row_count_ + (lower ? 0 : 1)) / 2;
    const double part = is_endless()
                            ? bits.uniform()
                            : static_cast<double>(row / 2) /
                                  static_cast<double>(std::max<std::int64_t>(points - 1, 1));
    const double angle = std::numbers::pi * part;
    const double x = std::cos(angle);
    const double y = std::sin(angle);
    made.features.push_back((lower ? 1 - x : x) + noise_ * bits.normal());
    made.features.push_back((lower ? 0.5 - y : y) + noise_ * bits.normal());
    made.target_classes.push_back(lower ? 1 : 0);
  }
  return made;
}

Spirals::Spirals(const Config& config)
    : SyntheticData(config, "spirals"),
      row_count_(row_count(config, 1500)),
      class_count_(config.get_or("classes", std::int64_t{3})),
      turns_(config.get_or("turns", 1.0)),
      noise_(config.get_or("noise", 0.03)) {
  if (row_count_ < class_count_)
    config.fail("rows", "must be at least the number of classes, " + std::to_string(class_count_));
}

MadeRows Spirals::make_rows(RandomBits bits) const {
  MadeRows made = plane_with_classes(class_count_);
  for (std::int64_t row = 0; row < row_count_; ++row) {
    const std::int64_t arm = row % class_count_;
    const double radius = is_endless()
                              ? 1 - bits.uniform()
                              : static_cast<double>(row + 1) / static_cast<double>(row_count_);
    const double angle =
        2 * std::numbers::pi *
        (turns_ * radius + static_cast<double>(arm) / static_cast<double>(class_count_));
    made.features.push_back(radius * std::cos(angle) + noise_ * bits.normal());
    made.features.push_back(radius * std::sin(angle) + noise_ * bits.normal());
    made.target_classes.push_back(arm);
  }
  return made;
}

Friedman1::Friedman1(const Config& config)
    : SyntheticData(config, "friedman1"),
      row_count_(row_count(config, 1000)),
      column_count_(config.get_or("features", std::int64_t{10})),
      noise_(config.get_or("noise", 1.0)) {}

MadeRows Friedman1::make_rows(RandomBits bits) const {
  MadeRows made;
  made.columns = numbered("x", 0, column_count_);
  made.target = "y";
  made.features.reserve(static_cast<std::size_t>(row_count_ * column_count_));
  for (std::int64_t row = 0; row < row_count_; ++row) {
    for (std::int64_t c = 0; c < column_count_; ++c)
      made.features.push_back(bits.uniform());
    const double* const x = &made.features[static_cast<std::size_t>(row * column_count_)];
    made.target_numbers.push_back(10 * std::sin(std::numbers::pi * x[0] * x[1]) +
                                  20 * (x[2] - 0.5) * (x[2] - 0.5) + 10 * x[3] + 5 * x[4] +
                                  noise_ * bits.normal());
  }
  return made;
}

Sea::Sea(const Config& config)
    : SyntheticData(config, "sea"),
      concept_rows_(config.get_or("concept_rows", std::int64_t{5000})),
      thresholds_(config.get_or("thresholds", std::vector<double>{8, 9, 7, 9.5})),
      label_noise_(config.get_or("label_noise", 0.1)) {}

MadeRows Sea::make_rows(RandomBits bits) const {
  constexpr double kWidth = 10;
  MadeRows made;
  made.columns = numbered("x", 0, 3);
  made.target = "class";
  made.classes = numbered("", 0, 2);
  for (std::size_t part = 0; part < thresholds_.size(); ++part) {
    for (std::int64_t row = 0; row < concept_rows_; ++row) {
      double x[3];
      for (double& one : x) {
        one = kWidth * bits.uniform();
        made.features.push_back(one);
      }
      const bool is_flipped = bits.uniform() < label_noise_;
      made.target_classes.push_back((x[0] + x[1] <= thresholds_[part]) != is_flipped ? 1 : 0);
      made.groups.push_back(static_cast<std::int64_t>(part));
    }
  }
  return made;
}

ArSeries::ArSeries(const Config& config)
    : SyntheticData(config, "ar_series"),
      coefficients_(config.get_or("coefficients", std::vector<double>{0.6, -0.3, 0.2})),
      length_(config.get_or("length", std::int64_t{2000})),
      window_(config.get_or("window", static_cast<std::int64_t>(coefficients_.size()))),
      noise_(config.get_or("noise", 1.0)) {
  if (length_ < window_ + 2) {
    config.fail("length", "must be at least " + std::to_string(window_ + 2) +
                              ", the window and two rows, got " + std::to_string(length_));
  }
}

MadeRows ArSeries::make_rows(RandomBits bits) const {
  // The first values still show that the series began with zeros; they are thrown away.
  constexpr std::int64_t kForgotten = 1000;
  constexpr double kLargest = 1e12;
  std::vector<double> series;
  series.reserve(static_cast<std::size_t>(kForgotten + length_));
  for (std::int64_t t = 0; t < kForgotten + length_; ++t) {
    double value = noise_ * bits.normal();
    for (std::size_t lag = 1; lag <= coefficients_.size() && lag <= series.size(); ++lag)
      value += coefficients_[lag - 1] * series[series.size() - lag];
    if (!(std::abs(value) < kLargest)) {
      throw DataError(
          "ar_series: the series grows without end with these coefficients; take smaller ones");
    }
    series.push_back(value);
  }
  series.erase(series.begin(), series.begin() + kForgotten);

  MadeRows made;
  made.columns = numbered("lag_", 1, window_);
  made.target = "next";
  made.is_series = true;
  made.features.reserve(static_cast<std::size_t>((length_ - window_) * window_));
  for (std::int64_t t = window_; t < length_; ++t) {
    for (std::int64_t lag = 1; lag <= window_; ++lag)
      made.features.push_back(series[static_cast<std::size_t>(t - lag)]);
    made.target_numbers.push_back(series[static_cast<std::size_t>(t)]);
  }
  return made;
}

}  // namespace treadle::synthetic
