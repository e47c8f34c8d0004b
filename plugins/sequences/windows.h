#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/sequence_provider.h>

namespace treadle::sequences {

/// Where windows lie in the rows of one series.
struct WindowShape {
  std::int64_t lookback = 1;
  std::int64_t horizon = 1;
  std::int64_t stride = 1;
  std::int64_t gap = 0;
  std::int64_t evaluation_stride = 1;

  /// Rows of one sample.
  std::int64_t span(bool has_targets) const {
    return has_targets ? lookback + gap + horizon : lookback;
  }
};

/// The first rows of the windows in the rows [series.begin, series.end), ascending. With targets
/// the first window begins with the series; without, the last one ends with it.
std::vector<std::int64_t> window_starts(const RowRange& series, const WindowShape& shape,
                                        bool has_targets);

/// `windows`: consecutive rows of a table as a sample, for forecasting.
///
/// An input of shape {C} becomes {lookback, C}; the columns' names are left out, because a port
/// with columns is a table. Targets have the steps of the horizon as their first dimension; with a
/// horizon of 1 a target keeps its shape.
///
/// samples() reads all rows once and keeps a copy of them: windows overlap, and each is one memcpy
/// from that copy. Nothing is asked of the rows after it.
class Windows final : public SequenceProvider {
 public:
  explicit Windows(const Config& config);
  ~Windows() override;

 private:
  std::unique_ptr<SampleReader> do_samples(const RowReader& rows) const override;
  /// Throws DataError for data that windows cannot be made of.
  void check(const DataSpec& spec) const;
  std::vector<std::int64_t> starts_in(const RowReader& rows) const;

  WindowShape shape_;
  bool include_targets_ = false;
  bool skip_short_ = false;
};

}  // namespace treadle::sequences
