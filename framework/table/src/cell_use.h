#pragma once

#include <cstdint>
#include <string_view>

#include <treadle/core/data/data_provider.h>

#include "table_layout.h"

namespace treadle::table {

/// The value that a cell is turned into.
enum class Reads : std::uint8_t {
  kNothing,
  kNumber,    // a feature
  kCategory,  // a feature
  kDate,      // a feature, which becomes several numbers
  kTargetNumber,
  kTargetLabel,  // 0 or 1
  kTargetShare,  // a probability
  kTargetClass,
  kTargetByLabel,  // the first label decides, where losses and metrics leave it open
  kWeight,
  kGroup,
  kTime,
  kLabelEnd,
  kBoth  // a feature and a target
};

Reads reads_for_kind(TargetKind kind);
/// By the target's own kind, else by task and losses.
Reads reads_for_target(const TargetColumns& target, const OpenRequest& request);
TargetKind kind_of(Reads reads);
bool is_target(Reads reads);

/// "inf", "-Infinity".
bool is_infinity(std::string_view text);
/// "5,1" for 5.1, as spreadsheets write it in many countries.
bool has_decimal_comma(std::string_view text);

}  // namespace treadle::table
