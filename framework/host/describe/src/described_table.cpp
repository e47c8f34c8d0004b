#include <treadle/host/describe/described_table.h>

#include <array>
#include <cstddef>

#include <ATen/ops/isfinite.h>

namespace treadle::describe {

std::string_view name_of(ColumnKind kind) {
  static constexpr std::array<std::string_view, 4> kNames{"number", "category", "time", "text"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::int64_t DescribedTable::rows() const {
  for (const auto* columns : {&inputs, &targets, &others}) {
    if (!columns->empty())
      return columns->front().values.size(0);
  }
  return 0;
}

at::Tensor present(const DescribedColumn& column) {
  return column.has_codes() ? column.values.ge(0) : at::isfinite(column.values);
}

}  // namespace treadle::describe
