#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/devices/device_constant.h>

#include "line_fit.h"

namespace treadle::transforms {

/// Throws a DataError that names `component` unless rows have groups.
void expect_groups(const at::Tensor& groups, const std::string& component);

/// The place of each group's lines, by its number. Without groups there is one place, for all rows.
class GroupPlaces {
 public:
  GroupPlaces() = default;
  /// Of groups in ascending order; others have a place behind theirs where `has_overall`.
  GroupPlaces(std::vector<std::int64_t> groups, bool has_overall)
      : by_group_(true), groups_(std::move(groups)), has_overall_(has_overall) {}

  bool is_by_group() const { return by_group_; }
  std::size_t size() const { return groups_.size() + (has_overall_ || !by_group_ ? 1 : 0); }
  const std::vector<std::int64_t>& groups() const { return groups_; }

  /// The place of each row, int64 [B], for rows of `groups`; undefined where there is one place.
  /// Throws a DataError that names `component` for rows without groups, or of one without a place.
  at::Tensor of(const at::Tensor& groups, const std::string& component) const;

 private:
  bool by_group_ = false;
  std::vector<std::int64_t> groups_;
  bool has_overall_ = false;
};

/// The lines of one input or target: for each place, and for each index of one dimension of a row.
class Lines {
 public:
  /// The dimension of a row whose indices have lines; with one line it does not matter.
  enum class Dimension { kFirst, kLast };

  /// Undefined: nothing changes.
  Lines() = default;
  /// `lines` has those of place 0, then those of place 1.
  Lines(std::span<const Line> lines, const GroupPlaces& places, Dimension dimension);
  /// As shift() and scale() were; StorageError where they are not for these places.
  Lines(const at::Tensor& shift, const at::Tensor& scale, const GroupPlaces& places,
        Dimension dimension);

  bool defined() const { return shift_.is_defined(); }

  /// Changes values [B, ...] in place. `places` as GroupPlaces::of() has them.
  void apply(at::Tensor& values, const at::Tensor& places) const;
  at::Tensor inverted(const at::Tensor& values, const at::Tensor& places) const;

  /// float64 on the CPU: [lines], by group [places, lines].
  const at::Tensor& shift() const { return shift_.numbers(); }
  const at::Tensor& scale() const { return scale_.numbers(); }

 private:
  /// Shaped to be broadcast over `values`, with their dtype and device.
  at::Tensor of_rows(const DeviceConstant& constant, const at::Tensor& values,
                     const at::Tensor& places) const;

  DeviceConstant shift_;
  DeviceConstant scale_;
  Dimension dimension_ = Dimension::kLast;
};

}  // namespace treadle::transforms
