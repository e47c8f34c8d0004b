#include "array_rows.h"

#include <cstddef>

#include <ATen/ops/empty.h>

#include "memory_rows.h"

namespace treadle::arrays {
namespace {

// The memory that is there, where it fits.
void make_fit(at::Tensor& out, std::int64_t rows, at::IntArrayRef row_shape, at::ScalarType dtype) {
  const bool fits = out.defined() && out.scalar_type() == dtype && out.dim() >= 1 &&
                    out.size(0) == rows && out.sizes().slice(1).equals(row_shape) &&
                    out.is_contiguous();
  if (fits)
    return;
  std::vector<std::int64_t> shape = {rows};
  shape.insert(shape.end(), row_shape.begin(), row_shape.end());
  out = at::empty(shape, dtype);
}

void gather_from(const at::Tensor& source, std::span<const std::int64_t> rows, at::Tensor& out) {
  if (!source.defined()) {
    out = at::Tensor();
    return;
  }
  make_fit(out, static_cast<std::int64_t>(rows.size()), source.sizes().slice(1),
           source.scalar_type());
  copy_rows(source, rows, out);
}

}  // namespace

ArrayRows::~ArrayRows() = default;

void ArrayRows::do_gather(std::span<const std::int64_t> rows, Batch& out) const {
  const auto count = static_cast<std::int64_t>(rows.size());
  std::vector<std::int64_t> kept;
  if (!parts_.kept.empty()) {
    kept.reserve(rows.size());
    for (const std::int64_t row : rows)
      kept.push_back(parts_.kept[static_cast<std::size_t>(row)]);
  }
  const std::span<const std::int64_t> source_rows = parts_.kept.empty() ? rows : kept;
  out.inputs.resize(parts_.inputs.size());
  for (std::size_t port = 0; port < parts_.inputs.size(); ++port) {
    make_fit(out.inputs[port], count, parts_.spec.inputs[port].shape, parts_.dtype);
    parts_.inputs[port]->gather(source_rows, out.inputs[port]);
  }
  gather_from(parts_.targets, rows, out.targets);
  gather_from(parts_.weights, rows, out.weights);
}

std::string ArrayRows::do_describe_row(std::int64_t row) const {
  return parts_.named_by->describe_row(
      parts_.kept.empty() ? row : parts_.kept[static_cast<std::size_t>(row)]);
}

}  // namespace treadle::arrays
