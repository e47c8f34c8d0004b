#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <treadle/base/hash.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/core/data/row_problems.h>

#include "array_files.h"
#include "array_options.h"
#include "mapped_rows.h"

namespace treadle::arrays {

/// What the readings of all arrays share while data is being opened.
struct Reading {
  Reading(const ArrayOptions& options, const OpenRequest& request, bool is_later)
      : options(options), request(request), is_later(is_later) {}

  bool predicts() const { return request.purpose == OpenRequest::Purpose::kPredict; }
  bool drops_rows() const { return options.missing == Missing::kDropRow && !predicts(); }
  void drop(std::int64_t row) { dropped[static_cast<std::size_t>(row)] = 1; }
  bool is_dropped(std::int64_t row) const {
    return !dropped.empty() && dropped[static_cast<std::size_t>(row)] != 0;
  }

  const ArrayOptions& options;
  const OpenRequest& request;
  bool is_later;  ///< the files must fit those of a training
  ContentHash hash;
  RowProblems problems;
  std::vector<char> dropped;  ///< one per row when rows may be dropped, else empty
  /// What all_rows_in_map() gave views of.
  std::vector<std::unique_ptr<const MappedRows>> maps;
};

/// The numbers of an array where they lie, [N, …], when inputs stay in their files as well and the
/// file has this type; undefined otherwise, and they are to be copied.
inline at::Tensor all_rows_in_map(const std::shared_ptr<const ArrayFiles>& array,
                                  at::ScalarType dtype, Reading& reading) {
  if (reading.options.access != Access::kMapped)
    return {};
  auto map = std::make_unique<const MappedRows>(array);
  at::Tensor rows = map->view(dtype);
  if (rows.defined())
    reading.maps.push_back(std::move(map));
  return rows;
}

/// Reads the whole array into the hash and gives `use` each piece, as (walk, a number of the type
/// the file has).
template <typename Use>
void for_each_piece(const ArrayFiles& array, ContentHash& hash, Use&& use) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
  hash.update(std::string(name_of(array.item())) + shape_text(array.row_shape()) +
              std::to_string(array.rows()) + ";");
  PieceWalk walk(
      array, static_cast<std::int64_t>(std::max<std::size_t>(1, kPieceBytes / array.row_bytes())));
  with_type_of(array.item(), [&](auto number) {
    for (Found found = walk.next(); found != Found::kEnd; found = walk.next()) {
      if (found == Found::kSkipped)
        continue;
      hash.update(walk.bytes());
      use(std::as_const(walk), number);
    }
  });
}

/// The same number by number, as (row, which number of the row, number).
template <typename Use>
void for_each_number(const ArrayFiles& array, ContentHash& hash, Use&& use) {
  const std::size_t items = array.row_items();
  for_each_piece(array, hash, [&](const PieceWalk& walk, auto number) {
    using T = decltype(number);
    const std::byte* bytes = walk.bytes().data();
    for (std::int64_t row = walk.first_row(); row < walk.first_row() + walk.rows(); ++row) {
      for (std::size_t item = 0; item < items; ++item, bytes += sizeof(T))
        use(row, item, number_at<T>(bytes));
    }
  });
}

template <typename T>
std::string number_text(T value) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

template <typename T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(value);
  return false;
}

}  // namespace treadle::arrays
