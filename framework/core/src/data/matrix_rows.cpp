#include <treadle/core/data/matrix_rows.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>

#include "components/tensor_words.h"

namespace treadle {
namespace {

bool fits_shape(at::IntArrayRef sizes, const std::vector<std::int64_t>& shape) {
  if (sizes.size() != shape.size())
    return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != kVaries && shape[i] != sizes[i])
      return false;
  }
  return true;
}

// `shape` is that of one row.
void expect_matrix(const std::string& what, const at::Tensor& matrix, std::int64_t rows,
                   const std::vector<std::int64_t>& shape) {
  TREADLE_EXPECTS(matrix.device().is_cpu() && matrix.is_contiguous(),
                  what + " must be contiguous and on the CPU");
  TREADLE_EXPECTS(
      matrix.dim() >= 1 && matrix.size(0) == rows && fits_shape(matrix.sizes().slice(1), shape),
      what + " must have " + std::to_string(rows) + " rows of shape " + shape_text(shape) +
          ", got " + shape_text(matrix.sizes()));
}

bool varies(const std::vector<std::int64_t>& shape) {
  return !shape.empty() && shape.front() == kVaries;
}

// Rows are short, so the copy of one is a call with a size known to be small; a table of single
// numbers is copied as such. `longest`: of the first dimension of a row, how much to copy; -1: all.
void copy_rows(const at::Tensor& source, std::span<const std::int64_t> rows, at::Tensor& out,
               std::int64_t longest = -1) {
  if (!source.defined()) {
    out = at::Tensor();
    return;
  }
  std::vector<std::int64_t> sizes = source.sizes().vec();
  sizes[0] = static_cast<std::int64_t>(rows.size());
  if (longest >= 0)
    sizes[1] = longest;
  const bool fits = out.defined() && out.scalar_type() == source.scalar_type() &&
                    out.sizes().equals(sizes) && out.is_contiguous();
  if (!fits)
    out = at::empty(sizes, source.options());
  std::size_t row_bytes = source.element_size();
  std::size_t copied = row_bytes;
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    row_bytes *= static_cast<std::size_t>(source.size(static_cast<std::int64_t>(i)));
    copied *= static_cast<std::size_t>(sizes[i]);
  }
  const auto* from = static_cast<const std::byte*>(source.data_ptr());
  auto* to = static_cast<std::byte*>(out.data_ptr());
  for (const std::int64_t row : rows) {
    std::memcpy(to, from + static_cast<std::size_t>(row) * row_bytes, copied);
    to += copied;
  }
}

/// 1 where a position lies within the row's length, else 0: float32 [B, longest].
at::Tensor within(const at::Tensor& lengths, std::int64_t longest) {
  return at::arange(longest, at::kLong).unsqueeze(0).lt(lengths.unsqueeze(1)).to(at::kFloat);
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
  TREADLE_EXPECTS(matrices_.targets.size() == spec.targets.size(),
                  "there must be one matrix per target");
  for (std::size_t target = 0; target < spec.targets.size(); ++target) {
    const TargetSpec& one = spec.targets[target];
    expect_matrix("target \"" + one.name + "\"", matrices_.targets[target], rows_, one.shape);
    TREADLE_EXPECTS((one.kind == TargetKind::kClasses) ==
                        (matrices_.targets[target].scalar_type() == at::kLong),
                    "targets are int64 for classes, else numbers");
  }
  TREADLE_EXPECTS(matrices_.position_weights.empty() ||
                      matrices_.position_weights.size() == spec.targets.size(),
                  "weights of positions are one per target");
  find_lengths();
  TREADLE_EXPECTS(spec.has_weights == matrices_.weights.defined(),
                  "the spec and the weights disagree on whether there are weights");
  const std::pair<const char*, at::Tensor> per_row[] = {{"weights", matrices_.weights},
                                                        {"groups", matrices_.groups},
                                                        {"timestamps", matrices_.timestamps},
                                                        {"label ends", matrices_.label_ends},
                                                        {"known from", matrices_.known_from}};
  for (const auto& [what, matrix] : per_row) {
    if (matrix.defined())
      expect_matrix(what, matrix, rows_, {});
  }
}

MatrixRows::~MatrixRows() = default;

void MatrixRows::find_lengths() {
  const std::vector<PortSpec>& inputs = matrices_.spec.inputs;
  const auto port_of_lengths = [&](std::string_view name) -> std::optional<std::size_t> {
    for (std::size_t port = 0; port < inputs.size(); ++port) {
      if (inputs[port].role == Role::kLengths && inputs[port].of == name)
        return port;
    }
    return std::nullopt;
  };
  for (const PortSpec& port : inputs) {
    const std::string& owner = port.is_auxiliary() ? port.of : port.name;
    lengths_of_inputs_.push_back(varies(port.shape) ? port_of_lengths(owner) : std::nullopt);
  }
  for (const TargetSpec& target : matrices_.spec.targets) {
    lengths_of_targets_.push_back(target.padded_like.empty() ? std::nullopt
                                                             : port_of_lengths(target.padded_like));
    TREADLE_EXPECTS(target.padded_like.empty() || lengths_of_targets_.back().has_value(),
                    "target \"" + target.name + "\" is padded like \"" + target.padded_like +
                        "\", which has no port of lengths");
  }
}

std::int64_t MatrixRows::longest(std::optional<std::size_t> lengths,
                                 std::span<const std::int64_t> rows) const {
  if (!lengths)
    return -1;
  const std::int64_t* const of_rows = matrices_.inputs[*lengths].data_ptr<std::int64_t>();
  std::int64_t longest = 1;  // a batch of nothing but empty rows still has a position
  for (const std::int64_t row : rows)
    longest = std::max(longest, of_rows[row]);
  return longest;
}

void MatrixRows::do_gather(std::span<const std::int64_t> rows, Batch& out) const {
  const std::vector<TargetSpec>& targets = matrices_.spec.targets;
  out.inputs.resize(matrices_.inputs.size());
  for (std::size_t port = 0; port < matrices_.inputs.size(); ++port) {
    copy_rows(matrices_.inputs[port], rows, out.inputs[port],
              longest(lengths_of_inputs_[port], rows));
  }
  out.targets.resize(targets.size());
  const bool has_padding =
      std::any_of(targets.begin(), targets.end(),
                  [](const TargetSpec& target) { return !target.padded_like.empty(); });
  const bool weighs = has_padding || !matrices_.position_weights.empty();
  out.position_weights.resize(weighs ? targets.size() : 0);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const std::int64_t width =
        varies(targets[i].shape) ? longest(lengths_of_targets_[i], rows) : -1;
    copy_rows(matrices_.targets[i], rows, out.targets[i], width);
    if (!weighs)
      continue;
    at::Tensor& weights = out.position_weights[i];
    weights = at::Tensor();
    if (i < matrices_.position_weights.size())
      copy_rows(matrices_.position_weights[i], rows, weights, width);
    if (!lengths_of_targets_[i])
      continue;
    const at::Tensor& lengths = out.inputs[*lengths_of_targets_[i]];
    at::Tensor real = within(lengths, out.targets[i].size(1));
    for (std::size_t more = 1; more < targets[i].position_dimensions(); ++more)
      real = real.unsqueeze(-1);
    const std::vector<std::int64_t> sizes =
        out.targets[i].sizes().slice(0, targets[i].position_dimensions() + 1).vec();
    weights = weights.defined() ? weights.mul(real) : real.expand(sizes).contiguous();
  }
  copy_rows(matrices_.weights, rows, out.weights);
}

at::Tensor MatrixRows::do_position_weights(std::size_t target) const {
  return matrices_.position_weights.empty() ? at::Tensor() : matrices_.position_weights[target];
}

at::Tensor MatrixRows::do_lengths(std::size_t input) const {
  return lengths_of_inputs_[input] ? matrices_.inputs[*lengths_of_inputs_[input]] : at::Tensor();
}

std::string MatrixRows::content_hash() const {
  ContentHash hash;
  hash.update(to_json(matrices_.spec).dump());
  for (const at::Tensor& input : matrices_.inputs)
    hash_tensor(hash, input);
  for (const at::Tensor& target : matrices_.targets)
    hash_tensor(hash, target);
  for (const at::Tensor& weights : matrices_.position_weights)
    hash_tensor(hash, weights);
  hash_tensor(hash, matrices_.weights);
  hash_tensor(hash, matrices_.groups);
  hash_tensor(hash, matrices_.timestamps);
  if (matrices_.label_ends.defined())
    hash_tensor(hash, matrices_.label_ends);
  if (matrices_.known_from.defined())
    hash_tensor(hash, matrices_.known_from);
  return hash.digest();
}

std::string MatrixRows::do_describe_row(std::int64_t row) const {
  return matrices_.describe_row ? matrices_.describe_row(row) : "row " + std::to_string(row);
}

}  // namespace treadle
