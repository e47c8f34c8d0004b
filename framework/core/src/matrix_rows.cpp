#include <treadle/core/matrix_rows.h>

#include <cstddef>
#include <cstring>
#include <sstream>
#include <string_view>
#include <utility>

#include <ATen/ops/empty.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>

namespace treadle {
namespace {

std::string shape_text(at::IntArrayRef shape) {
  std::ostringstream text;
  text << shape;
  return text.str();
}

// `shape` is what one row should look like.
void expect_matrix(std::string_view what, const at::Tensor& matrix, std::int64_t rows,
                   at::IntArrayRef shape) {
  TREADLE_EXPECTS(matrix.device().is_cpu() && matrix.is_contiguous(),
                  std::string(what) + " must be contiguous and on the CPU");
  TREADLE_EXPECTS(
      matrix.dim() >= 1 && matrix.size(0) == rows && matrix.sizes().slice(1).equals(shape),
      std::string(what) + " must have " + std::to_string(rows) + " rows of shape " +
          shape_text(shape) + ", got " + shape_text(matrix.sizes()));
}

// Rows are short, so the copy of one is a call with a size known to be small; a table of single
// numbers is copied as such.
void copy_rows(const at::Tensor& source, std::span<const std::int64_t> rows, at::Tensor& out) {
  if (!source.defined()) {
    out = at::Tensor();
    return;
  }
  const auto count = static_cast<std::int64_t>(rows.size());
  const at::IntArrayRef row_shape = source.sizes().slice(1);
  const bool fits = out.defined() && out.scalar_type() == source.scalar_type() &&
                    out.dim() == source.dim() && out.size(0) == count &&
                    out.sizes().slice(1).equals(row_shape) && out.is_contiguous();
  if (!fits) {
    std::vector<std::int64_t> shape = source.sizes().vec();
    shape[0] = count;
    out = at::empty(shape, source.options());
  }
  const std::size_t item = source.element_size();
  std::size_t row_bytes = item;
  for (const std::int64_t extent : row_shape)
    row_bytes *= static_cast<std::size_t>(extent);
  const auto* from = static_cast<const std::byte*>(source.data_ptr());
  auto* to = static_cast<std::byte*>(out.data_ptr());
  for (const std::int64_t row : rows) {
    std::memcpy(to, from + static_cast<std::size_t>(row) * row_bytes, row_bytes);
    to += row_bytes;
  }
}

void hash_tensor(ContentHash& hash, const at::Tensor& tensor) {
  if (!tensor.defined()) {
    hash.update("none;");
    return;
  }
  hash.update(std::string(c10::toString(tensor.scalar_type())) + shape_text(tensor.sizes()) + ";");
  hash.update(std::span(static_cast<const std::byte*>(tensor.data_ptr()), tensor.nbytes()));
}

}  // namespace

MatrixRows::MatrixRows(Matrices matrices) : matrices_(std::move(matrices)) {
  const DataSpec& spec = matrices_.spec;
  TREADLE_EXPECTS(!matrices_.inputs.empty() && matrices_.inputs.size() == spec.inputs.size(),
                  "there must be one matrix per input port");
  TREADLE_EXPECTS(matrices_.inputs[0].dim() >= 1, "a matrix needs rows");
  rows_ = matrices_.inputs[0].size(0);
  for (std::size_t port = 0; port < spec.inputs.size(); ++port) {
    expect_matrix("input \"" + spec.inputs[port].name + "\"", matrices_.inputs[port], rows_,
                  spec.inputs[port].shape);
  }
  TREADLE_EXPECTS((spec.target.kind == TargetKind::kNone) == !matrices_.targets.defined(),
                  "the spec and the targets disagree on whether there is a target");
  if (spec.target.kind == TargetKind::kClasses) {
    expect_matrix("targets", matrices_.targets, rows_, {});
    TREADLE_EXPECTS(matrices_.targets.scalar_type() == at::kLong, "class targets are int64");
  } else if (spec.target.kind == TargetKind::kNumbers) {
    expect_matrix("targets", matrices_.targets, rows_, {spec.target.width});
  }
  TREADLE_EXPECTS(spec.has_weights == matrices_.weights.defined(),
                  "the spec and the weights disagree on whether there are weights");
  const std::pair<const char*, at::Tensor> per_row[] = {{"weights", matrices_.weights},
                                                        {"groups", matrices_.groups},
                                                        {"timestamps", matrices_.timestamps}};
  for (const auto& [what, matrix] : per_row) {
    if (matrix.defined())
      expect_matrix(what, matrix, rows_, {});
  }
}

MatrixRows::~MatrixRows() = default;

void MatrixRows::do_gather(std::span<const std::int64_t> rows, Batch& out) const {
  out.inputs.resize(matrices_.inputs.size());
  for (std::size_t port = 0; port < matrices_.inputs.size(); ++port)
    copy_rows(matrices_.inputs[port], rows, out.inputs[port]);
  copy_rows(matrices_.targets, rows, out.targets);
  copy_rows(matrices_.weights, rows, out.weights);
}

std::string MatrixRows::content_hash() const {
  ContentHash hash;
  hash.update(to_json(matrices_.spec).dump());
  for (const at::Tensor& input : matrices_.inputs)
    hash_tensor(hash, input);
  hash_tensor(hash, matrices_.targets);
  hash_tensor(hash, matrices_.weights);
  hash_tensor(hash, matrices_.groups);
  hash_tensor(hash, matrices_.timestamps);
  return hash.digest();
}

std::string MatrixRows::do_describe_row(std::int64_t row) const {
  return matrices_.describe_row ? matrices_.describe_row(row) : "row " + std::to_string(row);
}

}  // namespace treadle
