#include <treadle/core/transform.h>

#include <c10/core/GradMode.h>

namespace treadle {

void Transform::fit(const RowReader& reader, std::span<const std::int64_t> training_rows) {
  TREADLE_EXPECTS(!training_rows.empty(), "a transform needs at least one row to fit on");
  const at::NoGradGuard no_gradients;
  do_fit(reader, training_rows);
}

}  // namespace treadle
