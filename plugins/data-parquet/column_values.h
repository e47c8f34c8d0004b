#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace treadle::parquet {

/// The values of one column in some rows. Which vector there is depends on the column's Kind and
/// width alone: int32 for booleans, dates and integers of 32 bits, int64 for other integers and
/// times, float, double, or texts.
struct ColumnValues {
  using Values =
      std::variant<std::vector<std::int32_t>, std::vector<std::int64_t>, std::vector<float>,
                   std::vector<double>, std::vector<std::string_view>>;

  std::size_t rows = 0;
  /// Of `rows` values; a null has one that means nothing.
  Values values;
  /// One byte a row, 0 for a null. Only where has_nulls.
  std::vector<std::uint8_t> valid;
  bool has_nulls = false;
  /// The memory of the texts.
  std::vector<std::shared_ptr<const char[]>> owners;

  template <typename T>
  std::span<const T> as() const {
    return {std::get<std::vector<T>>(values).data(), rows};
  }
  /// Empty: no value is null.
  std::span<const std::uint8_t> validity() const {
    return has_nulls ? std::span<const std::uint8_t>(valid.data(), rows)
                     : std::span<const std::uint8_t>();
  }
  bool is_null(std::size_t row) const { return has_nulls && valid[row] == 0; }
};

}  // namespace treadle::parquet
