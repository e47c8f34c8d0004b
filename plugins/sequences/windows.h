#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/data/sequence_provider.h>

#include "sample_starts.h"
#include "window_ports.h"

namespace treadle::sequences {

/// Where windows lie in the rows of one series.
struct WindowShape {
  std::int64_t lookback = 1;
  std::int64_t horizon = 1;
  std::int64_t stride = 1;
  std::int64_t gap = 0;
  std::int64_t evaluation_stride = 1;

  /// Rows of one sample, with those of the horizon or without.
  std::int64_t span(bool has_horizon) const {
    return has_horizon ? lookback + gap + horizon : lookback;
  }
};

/// `windows`: consecutive rows of tables as a sample, for forecasting.
///
/// An input of shape {C} becomes {lookback, C}. Columns known in advance are a further input,
/// {horizon, F}, and static ones another, {S}; see window_ports(). Targets have the steps of the
/// horizon as their first dimension; with a horizon of 1 a target keeps its shape.
///
/// A sample is copied from the rows when it is gathered, see StepTable; which rows it has is
/// arithmetic, see SampleStarts.
class Windows final : public SequenceProvider {
 public:
  explicit Windows(const Config& config);
  ~Windows() override;

 private:
  std::unique_ptr<SampleReader> do_samples(const RowReader& rows) const override;
  /// Throws DataError for data that windows cannot be made of.
  void check(const DataSpec& spec) const;
  bool has_horizon(const DataSpec& spec) const {
    return !spec.targets.empty() || !columns_.future.empty();
  }
  SampleStarts starts_in(const RowReader& rows) const;

  WindowShape shape_;
  NamedColumns columns_;
  bool include_targets_ = false;
  bool skip_short_ = false;
};

}  // namespace treadle::sequences
