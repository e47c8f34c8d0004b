#pragma once

#include <cstdint>
#include <optional>

namespace treadle::internal {

/// How long the epochs of a trial take: the mean over its fits in this process.
class EpochTimes {
 public:
  /// `is_first`: since the fit was begun or went on. Such an epoch makes what later ones use again,
  /// and the very first of a process loads what all use.
  void add(double seconds, bool is_first) {
    Mean& mean = is_first ? first_ : later_;
    mean.sum += seconds;
    ++mean.count;
  }

  std::int64_t count() const { return first_.count + later_.count; }
  /// Seconds of an epoch to come: the mean of the later ones, where there are any, else of the
  /// first ones. Nothing: none was added.
  std::optional<double> next() const {
    const Mean& mean = later_.count > 0 ? later_ : first_;
    return mean.count > 0 ? std::optional(mean.sum / static_cast<double>(mean.count))
                          : std::nullopt;
  }

 private:
  struct Mean {
    double sum = 0;
    std::int64_t count = 0;
  };
  Mean first_;
  Mean later_;
};

}  // namespace treadle::internal
