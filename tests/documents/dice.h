#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include <treadle/base/random.h>

namespace treadle::testing {

/// Random decisions: the same ones for the same seed, on every machine.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : bits_(seed) {}

  std::size_t below(std::size_t count) { return static_cast<std::size_t>(bits_.below(count)); }
  bool chance(int percent) { return static_cast<int>(below(100)) < percent; }
  /// Both ends included.
  std::int64_t whole(std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(bits_.below(static_cast<std::uint64_t>(most - least) + 1));
  }
  double between(double low, double high) { return low + (high - low) * bits_.uniform(); }
  /// Few digits, so that a person can read the document.
  double short_number(double value) {
    if (value == 0)
      return 0;
    const double unit = std::pow(10, std::floor(std::log10(std::abs(value))) - 1);
    return std::round(value / unit) * unit;
  }
  double normal() { return bits_.normal(); }
  template <typename T>
  const T& one_of(const std::vector<T>& all) {
    return all[below(all.size())];
  }
  /// Some of them, in their order: at least one.
  template <typename T>
  std::vector<T> some_of(const std::vector<T>& all) {
    std::vector<T> some;
    for (const T& one : all) {
      if (chance(50))
        some.push_back(one);
    }
    if (some.empty() && !all.empty())
      some.push_back(one_of(all));
    return some;
  }

 private:
  RandomBits bits_;
};

}  // namespace treadle::testing
