#include "column_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <treadle/base/error.h>

namespace treadle::transforms {

bool ColumnStatistics::is_constant() const {
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  const double of_mean = count * mean * kEpsilon;
  return variance() <= count * kEpsilon * variance() + of_mean * of_mean;
}

void add_rows(std::vector<ColumnStatistics>& columns, const at::Tensor& values) {
  TREADLE_EXPECTS(values.dim() == 2 && values.size(1) == static_cast<std::int64_t>(columns.size()),
                  "the rows have another number of columns");
  const at::Tensor wide = values.to(at::kDouble).contiguous();
  const std::size_t width = columns.size();
  const double* const begin = wide.data_ptr<double>();
  const double* const end = begin + wide.numel();
  std::vector<ColumnStatistics> here(width);
  for (const double* row = begin; row != end; row += width) {
    for (std::size_t c = 0; c < width; ++c) {
      if (std::isnan(row[c]))
        continue;
      here[c].count += 1;
      here[c].mean += row[c];
    }
  }
  for (ColumnStatistics& column : here)
    column.mean /= std::max(column.count, 1.0);
  for (const double* row = begin; row != end; row += width) {
    for (std::size_t c = 0; c < width; ++c) {
      if (std::isnan(row[c]))
        continue;
      const double distance = row[c] - here[c].mean;
      here[c].squares += distance * distance;
      here[c].minimum = std::min(here[c].minimum, row[c]);
      here[c].maximum = std::max(here[c].maximum, row[c]);
    }
  }
  join(columns, here);
}

void join(std::vector<ColumnStatistics>& columns, const std::vector<ColumnStatistics>& others) {
  for (std::size_t c = 0; c < columns.size(); ++c) {
    ColumnStatistics& total = columns[c];
    const ColumnStatistics& more = others[c];
    if (more.count == 0)
      continue;
    const double count = total.count + more.count;
    const double distance = more.mean - total.mean;
    total.squares += more.squares + distance * distance * total.count * more.count / count;
    total.mean += distance * more.count / count;
    total.count = count;
    total.minimum = std::min(total.minimum, more.minimum);
    total.maximum = std::max(total.maximum, more.maximum);
  }
}

}  // namespace treadle::transforms
