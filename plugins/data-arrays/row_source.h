#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

namespace treadle::arrays {

/// Rows of one input, wherever they lie, as numbers of its port's type.
class RowSource {
 public:
  virtual ~RowSource() = default;

  /// Copies the given rows, in the given order, into `out`: contiguous, [rows.size(), …], float32,
  /// float64, int64, uint8 or bool. Where `out` has less for a row than there is, the beginning of
  /// each row is copied. Called from several threads at once. Throws DataError.
  virtual void gather(std::span<const std::int64_t> rows, at::Tensor& out) const = 0;

  /// All rows as they lie, [N, …], where that is one after the other and of this type; no copy.
  virtual at::Tensor view(at::ScalarType /*dtype*/) const { return {}; }
  /// Throws DataError where what view() gave lies in a file that is no longer what it was.
  virtual void expect_unchanged() const {}
};

/// How much of each row `out` has: in numbers.
inline std::size_t items_of(const at::Tensor& out) {
  std::size_t items = 1;
  for (std::int64_t d = 1; d < out.dim(); ++d)
    items *= static_cast<std::size_t>(out.size(d));
  return items;
}

/// Calls `use` with a pointer to the numbers of `out`.
template <typename Use>
void with_numbers_of(const at::Tensor& out, Use&& use) {
  switch (out.scalar_type()) {
    case at::kFloat:
      return use(out.data_ptr<float>());
    case at::kDouble:
      return use(out.data_ptr<double>());
    case at::kLong:
      return use(out.data_ptr<std::int64_t>());
    case at::kByte:
      return use(out.data_ptr<std::uint8_t>());
    default:
      return use(out.data_ptr<bool>());
  }
}

}  // namespace treadle::arrays
