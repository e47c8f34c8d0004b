#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

/// Statistics of the data of a document, before training. Functions without state: any thread.
namespace treadle::describe {

enum class ColumnKind {
  kNumber,    ///< real numbers
  kCategory,  ///< one of a list of names: categories, classes
  kTime,      ///< instants, or any increasing number
  kText       ///< texts that are no categories, such as identifiers
};

/// "number", "category", "time", "text".
std::string_view name_of(ColumnKind kind);

/// One value per row, as the data has it, before any transform.
struct DescribedColumn {
  std::string name;
  ColumnKind kind = ColumnKind::kNumber;
  /// Numbers and times: float64 [N]; NaN and infinities are missing. Times of dates are seconds
  /// since 1970-01-01T00:00:00Z.
  /// Categories and texts: int64 [N], indices into `names`, -1 for a missing one.
  at::Tensor values;
  std::vector<std::string> names = {};
  bool is_date = false;  ///< of times
  /// Made of the target of earlier rows, such as lags, or read with the target of a later row: it
  /// may well determine the target.
  bool is_past_target = false;

  bool has_codes() const { return kind == ColumnKind::kCategory || kind == ColumnKind::kText; }
};

/// Numbers of rows: int64 [n], ascending. Undefined: none.
struct RowParts {
  at::Tensor training = {};
  at::Tensor validation = {};

  bool is_split() const { return training.defined() && validation.defined(); }
};

struct DescribedTable {
  std::vector<DescribedColumn> inputs;
  std::vector<DescribedColumn> targets = {};
  std::vector<DescribedColumn> others = {};  ///< that no model is given: times, identifiers
  RowParts parts = {};                       ///< of the first fold
  std::int64_t rows_of_data = 0;             ///< of which the columns may have a sample
  bool has_all_inputs = true;  ///< false: a row has inputs that are no columns, as images are
  std::vector<std::string> notes = {};  ///< what is not described, and why

  std::int64_t rows() const;
};

/// Where the column has a value: bool [N].
at::Tensor present(const DescribedColumn& column);

}  // namespace treadle::describe
