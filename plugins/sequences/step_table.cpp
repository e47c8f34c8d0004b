#include "step_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <ATen/ops/empty.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/core/matrix_rows.h>
#include <treadle/core/transform.h>

#include "stretches.h"

namespace treadle::sequences {
namespace {

std::size_t row_bytes(const at::Tensor& table) {
  return static_cast<std::size_t>(table.size(1)) * table.element_size();
}

}  // namespace

StepTable::StepTable(const RowReader& rows, std::vector<std::size_t> joined)
    : rows_(rows),
      lies_in_memory_(contiguous_rows(rows)),
      spec_(rows.spec()),
      joined_(std::move(joined)) {
  for (std::size_t i = 0; i < spec_.targets.size(); ++i) {
    if (rows.position_weights(i).defined()) {
      throw DataError("the sequence windows takes weights of rows, and target " +
                      quote_text(spec_.targets[i].name) + " has weights of positions");
    }
    targets_.push_back(rows.targets(i).contiguous());
  }
  find_weights();
  find_columns();
  // A statistic counts each row once, and a port with columns is a table.
  spec_.has_weights = false;
  spec_.inputs[0].columns.clear();
  for (const std::size_t target : joined_)
    spec_.inputs[0].shape[0] += spec_.targets[target].shape[0];
}

StepTable::~StepTable() = default;

void StepTable::find_weights() {
  if (!spec_.has_weights)
    return;
  if (lies_in_memory_ != nullptr)
    weights_ = lies_in_memory_->contiguous_weights();
  if (weights_.defined())
    return;
  for_each_chunk(rows_, RowList::range(0, rows_.rows()), [&](const Batch& batch) {
    if (!weights_.defined())
      weights_ = at::empty({rows_.rows()}, batch.weights.options());
    weights_.narrow(0, batch.rows[0].item<std::int64_t>(), batch.size()).copy_(batch.weights);
  });
}

void StepTable::find_columns() {
  at::Tensor input;
  if (lies_in_memory_ != nullptr)
    input = lies_in_memory_->contiguous_input(0);
  const std::int64_t bytes =
      rows_.rows() * width() * static_cast<std::int64_t>(c10::elementSize(spec_.inputs[0].dtype));
  if (!input.defined() && bytes <= kMostCopied) {
    input = at::empty({rows_.rows(), width()}, spec_.inputs[0].dtype);
    for_each_chunk(rows_, RowList::range(0, rows_.rows()), [&](const Batch& batch) {
      input.narrow(0, batch.rows[0].item<std::int64_t>(), batch.size()).copy_(batch.inputs[0]);
    });
  }
  if (!input.defined())
    return;
  columns_.push_back(input);
  for (const std::size_t target : joined_)
    columns_.push_back(targets_[target].to(input.scalar_type()));
}

void StepTable::expect_unchanged() const {
  if (lies_in_memory_ != nullptr)
    lies_in_memory_->expect_unchanged();
}

void StepTable::copy_columns(std::span<const std::int64_t> firsts, std::int64_t count,
                             at::Tensor& out) const {
  if (columns_.size() == 1)
    return copy_stretches(columns_[0], firsts, 0, count, {count, width()}, out);
  make_fit(static_cast<std::int64_t>(firsts.size()), {count, width()}, spec_.inputs[0].dtype, out);
  if (columns_.empty())
    return read_columns(firsts, count, out.view({-1, width()}));
  const std::size_t width_bytes = static_cast<std::size_t>(width()) * out.element_size();
  auto* place = static_cast<std::byte*>(out.data_ptr());
  for (const at::Tensor& column : columns_) {
    const std::size_t bytes = row_bytes(column);
    const auto* const from = static_cast<const std::byte*>(column.data_ptr());
    std::byte* to = place;
    for (const std::int64_t first : firsts) {
      for (std::int64_t row = first; row < first + count; ++row, to += width_bytes)
        std::memcpy(to, from + static_cast<std::size_t>(row) * bytes, bytes);
    }
    place += bytes;
  }
}

/// All rows of a batch in one call: a reader that holds chunks meets each of them once.
void StepTable::read_columns(std::span<const std::int64_t> firsts, std::int64_t count,
                             at::Tensor out) const {
  std::vector<std::int64_t> rows;
  rows.reserve(firsts.size() * static_cast<std::size_t>(count));
  for (const std::int64_t first : firsts) {
    for (std::int64_t row = first; row < first + count; ++row)
      rows.push_back(row);
  }
  Batch batch;
  if (joined_.empty())
    batch.inputs = {out};  // to be used
  rows_.gather(rows, batch);
  if (joined_.empty() && batch.inputs[0].data_ptr() == out.data_ptr())
    return;
  std::int64_t column = 0;
  const auto put = [&](const at::Tensor& values) {
    out.narrow(1, column, values.size(1)).copy_(values);
    column += values.size(1);
  };
  put(batch.inputs[0]);
  for (const std::size_t target : joined_)
    put(batch.targets[target]);
}

void StepTable::do_gather(std::span<const std::int64_t> rows, Batch& out) const {
  expect_unchanged();
  out.inputs.resize(1);
  at::Tensor columns = out.inputs[0].defined() && out.inputs[0].dim() == 2
                           ? out.inputs[0].unsqueeze(1)
                           : at::Tensor();
  copy_columns(rows, 1, columns);
  out.inputs[0] = columns.squeeze(1);
  out.targets.resize(targets_.size());
  for (std::size_t i = 0; i < targets_.size(); ++i)
    copy_stretches(targets_[i], rows, 0, 1, spec_.targets[i].shape, out.targets[i]);
  out.position_weights.clear();
  out.weights = at::Tensor();
}

}  // namespace treadle::sequences
