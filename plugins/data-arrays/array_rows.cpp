#include "array_rows.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

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

/// A batch of nothing but empty rows still has a position.
std::int64_t longest_of(const at::Tensor& lengths, std::span<const std::int64_t> rows) {
  const auto* const of_rows = lengths.data_ptr<std::int64_t>();
  std::int64_t longest = 1;
  for (const std::int64_t row : rows)
    longest = std::max(longest, of_rows[row]);
  return longest;
}

/// Writes zeros behind the end of each row of `out`, [B, longest, …].
void clear_padding(const at::Tensor& lengths, std::span<const std::int64_t> rows, at::Tensor& out) {
  if (rows.empty())
    return;
  const auto* const of_rows = lengths.data_ptr<std::int64_t>();
  const std::size_t row_bytes = out.nbytes() / rows.size();
  const std::size_t position_bytes = row_bytes / static_cast<std::size_t>(out.size(1));
  auto* row_begin = static_cast<std::byte*>(out.data_ptr());
  for (const std::int64_t row : rows) {
    const std::size_t real = static_cast<std::size_t>(of_rows[row]) * position_bytes;
    std::memset(row_begin + real, 0, row_bytes - real);
    row_begin += row_bytes;
  }
}

void weigh_positions(const at::Tensor& lengths, std::span<const std::int64_t> rows,
                     at::Tensor& weights) {
  auto* weight = weights.data_ptr<float>();
  const std::int64_t longest = weights.size(1);
  const auto inner = static_cast<std::int64_t>(items_of(weights)) / longest;
  for (const std::int64_t row : rows) {
    const std::int64_t real = lengths.data_ptr<std::int64_t>()[row] * inner;
    std::fill_n(weight, real, 1.0F);
    std::fill_n(weight + real, longest * inner - real, 0.0F);
    weight += longest * inner;
  }
}

}  // namespace

ArrayRows::~ArrayRows() = default;

at::Tensor ArrayRows::contiguous_input(std::size_t port) const {
  if (!parts_.kept.empty() || parts_.lengths[port].defined())
    return {};
  const PortSpec& spec = parts_.spec.inputs[port];
  const at::Tensor rows = parts_.inputs[port]->view(spec.dtype);
  if (!rows.defined())
    return rows;
  std::vector<std::int64_t> shape = {parts_.rows};
  shape.insert(shape.end(), spec.shape.begin(), spec.shape.end());
  return rows.view(shape);
}

void ArrayRows::expect_unchanged() const {
  for (const auto& source : parts_.inputs)
    source->expect_unchanged();
  expect_unchanged_views();
}

void ArrayRows::expect_unchanged_views() const {
  for (const auto& map : parts_.maps)
    map->expect_unchanged();
}

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
    const PortSpec& spec = parts_.spec.inputs[port];
    const at::Tensor& lengths = parts_.lengths[port];
    if (!lengths.defined()) {
      make_fit(out.inputs[port], count, spec.shape, spec.dtype);
      parts_.inputs[port]->gather(source_rows, out.inputs[port]);
      continue;
    }
    std::vector<std::int64_t> shape = spec.shape;
    shape[0] = longest_of(lengths, source_rows);
    make_fit(out.inputs[port], count, shape, spec.dtype);
    parts_.inputs[port]->gather(source_rows, out.inputs[port]);
    clear_padding(lengths, source_rows, out.inputs[port]);
  }
  expect_unchanged_views();
  gather_targets(rows, out);
  gather_from(parts_.weights, rows, out.weights);
}

void ArrayRows::gather_targets(std::span<const std::int64_t> rows, Batch& out) const {
  const auto count = static_cast<std::int64_t>(rows.size());
  const std::vector<TargetSpec>& specs = parts_.spec.targets;
  const auto any_defined = [](const std::vector<at::Tensor>& tensors) {
    return std::any_of(tensors.begin(), tensors.end(),
                       [](const at::Tensor& tensor) { return tensor.defined(); });
  };
  const bool weighs = any_defined(parts_.target_lengths) || any_defined(parts_.target_weights);
  out.targets.resize(specs.size());
  out.position_weights.resize(weighs ? specs.size() : 0);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const at::Tensor& values = parts_.targets[i];
    const at::Tensor& lengths = parts_.target_lengths[i];
    const at::Tensor& own_weights = parts_.target_weights[i];
    if (!lengths.defined()) {
      gather_from(values, rows, out.targets[i]);
      if (weighs)
        gather_from(own_weights, rows, out.position_weights[i]);
      continue;
    }
    std::vector<std::int64_t> shape = values.sizes().slice(1).vec();
    shape[0] = longest_of(lengths, rows);
    make_fit(out.targets[i], count, shape, values.scalar_type());
    copy_rows(values, rows, out.targets[i]);
    shape.resize(specs[i].position_dimensions());
    at::Tensor& weights = out.position_weights[i];
    make_fit(weights, count, shape, own_weights.defined() ? own_weights.scalar_type() : at::kFloat);
    if (own_weights.defined()) {
      copy_rows(own_weights, rows, weights);
    } else {
      weigh_positions(lengths, rows, weights);
    }
  }
}

at::Tensor ArrayRows::do_lengths(std::size_t input) const {
  const at::Tensor& lengths = parts_.lengths[input];
  if (!lengths.defined() || parts_.kept.empty())
    return lengths;
  return lengths.index_select(
      0, at::tensor(at::IntArrayRef(parts_.kept.data(), parts_.kept.size()), at::kLong));
}

std::string ArrayRows::do_describe_row(std::int64_t row) const {
  return parts_.named_by->describe_row(
      parts_.kept.empty() ? row : parts_.kept[static_cast<std::size_t>(row)]);
}

}  // namespace treadle::arrays
