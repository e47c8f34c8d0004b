#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <treadle/core/data/target_spec.h>

#include "values/growing_buffer.h"
#include "values/label_dictionary.h"
#include "values/number_buffer.h"
#include "values/row_positions.h"

namespace treadle::table {

/// The rows of a table, every value in its place. Classes and categories have the numbers of their
/// dictionaries, which count in the order of appearance unless they were given.
struct ParsedRows {
  /// Of one port or target: rows of `width` values; no rows when there are none.
  template <typename Values>
  struct Part {
    std::size_t width = 0;
    Values values;
  };
  using Numbers = Part<NumberBuffer>;
  using Indices = Part<GrowingBuffer<std::int64_t>>;

  /// The place of a category in its port's rows.
  struct CategoryPlace {
    std::size_t feature = 0;
    std::size_t port = 0;
    std::size_t slot = 0;
  };

  std::int64_t rows = 0;
  std::int64_t dropped = 0;              ///< left out because a value was missing
  std::vector<Numbers> numbers;          ///< one per port
  std::vector<Indices> categories;       ///< likewise
  std::vector<TargetKind> target_kinds;  ///< one per target
  std::vector<Numbers> target_numbers;   ///< likewise, for all kinds but classes
  std::vector<Indices> target_classes;
  std::vector<LabelDictionary> classes;
  NumberBuffer weights;
  GrowingBuffer<std::int64_t> groups;
  LabelDictionary group_names;
  GrowingBuffer<double> times;
  GrowingBuffer<double> utc_offsets;  ///< of times; empty: 0 each
  GrowingBuffer<double> label_ends;
  bool times_are_dates = false;
  std::vector<LabelDictionary> labels;  ///< one per feature; empty for numbers
  std::vector<char> has_missing;        ///< per feature
  std::vector<CategoryPlace> category_places;
  std::vector<std::size_t> places;  ///< of each feature in its port's numbers or categories
  std::shared_ptr<RowPositions> positions = std::make_shared<RowPositions>();
};

}  // namespace treadle::table
