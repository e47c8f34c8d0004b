#include "document_rows.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

namespace treadle::text {
namespace {

/// `out` of these sizes, with zeros in it; its memory is used again where it fits.
at::Tensor& cleared(at::Tensor& out, std::initializer_list<std::int64_t> sizes,
                    at::ScalarType dtype) {
  const at::IntArrayRef wanted(sizes);
  if (out.defined() && out.scalar_type() == dtype && out.sizes().equals(wanted) &&
      out.is_contiguous()) {
    return out.zero_();
  }
  return out = at::zeros(wanted, dtype);
}

}  // namespace

DocumentRows::~DocumentRows() = default;

std::int64_t DocumentRows::longest(std::span<const std::int64_t> rows) const {
  std::int64_t longest = 1;  // a batch of nothing but empty documents still has a position
  for (const std::int64_t row : rows)
    longest = std::max(longest, length(row));
  return longest;
}

std::vector<std::int64_t> DocumentRows::all() const {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(do_rows()));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

void DocumentRows::do_gather(std::span<const std::int64_t> rows, Batch& out) const {
  const auto count = static_cast<std::int64_t>(rows.size());
  const std::int64_t width = longest(rows);
  out.inputs.resize(2);
  auto* token = cleared(out.inputs[0], {count, width}, at::kLong).data_ptr<std::int64_t>();
  auto* of_row = cleared(out.inputs[1], {count}, at::kLong).data_ptr<std::int64_t>();
  for (const std::int64_t row : rows) {
    const auto first = contents_.tokens.begin() + contents_.offsets[static_cast<std::size_t>(row)];
    std::copy(first, first + length(row), token);
    token += width;
    *of_row++ = length(row);
  }
  const bool has_target = !contents_.spec.targets.empty();
  out.weights = at::Tensor();
  out.targets.resize(has_target ? 1 : 0);
  out.position_weights.resize(has_target && !contents_.of_tokens.empty() ? 1 : 0);
  if (has_target)
    gather_targets(rows, width, out.targets[0]);
  if (!out.position_weights.empty())
    gather_weights(rows, width, out.position_weights[0]);
}

void DocumentRows::gather_targets(std::span<const std::int64_t> rows, std::int64_t width,
                                  at::Tensor& out) const {
  const auto count = static_cast<std::int64_t>(rows.size());
  if (contents_.of_tokens.empty()) {
    const at::Tensor index =
        at::tensor(at::ArrayRef<std::int64_t>(rows.data(), rows.size()), at::kLong);
    gather_rows(contents_.of_documents, index, out);
    return;
  }
  auto* target = cleared(out, {count, width}, at::kLong).data_ptr<std::int64_t>();
  for (const std::int64_t row : rows) {
    const auto first =
        contents_.of_tokens.begin() + contents_.offsets[static_cast<std::size_t>(row)];
    std::copy(first, first + length(row), target);
    target += width;
  }
}

void DocumentRows::gather_weights(std::span<const std::int64_t> rows, std::int64_t width,
                                  at::Tensor& out) const {
  at::Tensor weights = at::zeros({static_cast<std::int64_t>(rows.size()), width}, at::kFloat);
  auto* weight = weights.data_ptr<float>();
  for (const std::int64_t row : rows) {
    if (contents_.weights.empty()) {
      std::fill(weight, weight + length(row), 1.0F);
    } else {
      const auto first =
          contents_.weights.begin() + contents_.offsets[static_cast<std::size_t>(row)];
      std::copy(first, first + length(row), weight);
    }
    weight += width;
  }
  out = weights;
}

at::Tensor DocumentRows::do_targets(std::size_t) const {
  if (contents_.of_tokens.empty())
    return contents_.of_documents;
  const std::vector<std::int64_t> rows = all();
  at::Tensor targets;
  gather_targets(rows, longest(rows), targets);
  return targets;
}

at::Tensor DocumentRows::do_position_weights(std::size_t) const {
  if (contents_.weights.empty())
    return {};
  const std::vector<std::int64_t> rows = all();
  at::Tensor weights;
  gather_weights(rows, longest(rows), weights);
  return weights;
}

at::Tensor DocumentRows::do_lengths(std::size_t input) const {
  if (input != 0)
    return {};
  at::Tensor lengths = at::empty({do_rows()}, at::kLong);
  auto* of_row = lengths.data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < do_rows(); ++row)
    of_row[row] = length(row);
  return lengths;
}

}  // namespace treadle::text
