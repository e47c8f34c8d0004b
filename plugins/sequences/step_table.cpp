#include "step_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/core/data/matrix_rows.h>
#include <treadle/core/data/transform.h>

#include "stretches.h"

namespace treadle::sequences {
namespace {

std::int64_t width_of(const WindowPort& port) {
  return port.spec.shape[0];
}

/// For each of `firsts` its rows.
std::vector<std::int64_t> rows_of(std::span<const std::int64_t> firsts, StepRange range) {
  std::vector<std::int64_t> rows;
  rows.reserve(firsts.size() * static_cast<std::size_t>(range.count));
  for (const std::int64_t first : firsts) {
    for (std::int64_t step = 0; step < range.count; ++step)
      rows.push_back(first + range.offset + step);
  }
  return rows;
}

}  // namespace

StepTable::StepTable(const RowReader& rows, std::vector<WindowPort> ports)
    : rows_(rows),
      lies_in_memory_(contiguous_rows(rows)),
      ports_(std::move(ports)),
      spec_(rows.spec()) {
  for (std::size_t i = 0; i < spec_.targets.size(); ++i) {
    if (rows.position_weights(i).defined()) {
      throw DataError("the sequence windows takes weights of rows, and target " +
                      quote_text(spec_.targets[i].name) + " has weights of positions");
    }
    targets_.push_back(rows.targets(i).contiguous());
  }
  // A window holds what is joined to its columns as exactly as they are.
  for (WindowPort& port : ports_) {
    for (const std::size_t target : port.joined)
      port.spec.dtype = c10::promoteTypes(port.spec.dtype, targets_[target].scalar_type());
  }
  find_weights();
  find_pieces();
  // A statistic counts each row once.
  spec_.has_weights = false;
  spec_.inputs.clear();
  for (const WindowPort& port : ports_)
    spec_.inputs.push_back(port.spec);
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

/// [N, columns] of an input of the rows; undefined where it is too large to be copied.
at::Tensor StepTable::in_memory(std::size_t input) const {
  at::Tensor table;
  if (lies_in_memory_ != nullptr)
    table = lies_in_memory_->contiguous_input(input);
  if (table.defined())
    return table;
  const PortSpec& port = rows_.spec().inputs[input];
  const std::int64_t bytes =
      rows_.rows() * port.shape[0] * static_cast<std::int64_t>(c10::elementSize(port.dtype));
  if (bytes > kMostCopied)
    return table;
  table = at::empty({rows_.rows(), port.shape[0]}, port.dtype);
  for_each_chunk(rows_, RowList::range(0, rows_.rows()), [&](const Batch& batch) {
    table.narrow(0, batch.rows[0].item<std::int64_t>(), batch.size()).copy_(batch.inputs[input]);
  });
  return table;
}

void StepTable::find_pieces() {
  std::vector<at::Tensor> tables(rows_.spec().inputs.size());
  for (const WindowPort& port : ports_) {
    if (!tables[port.input].defined())
      tables[port.input] = in_memory(port.input);
    const at::Tensor& table = tables[port.input];
    std::vector<Piece>& pieces = pieces_.emplace_back();
    if (!table.defined())
      continue;
    for (const std::int64_t column : port.columns) {
      if (!pieces.empty() && pieces.back().first + pieces.back().count == column) {
        ++pieces.back().count;
      } else {
        pieces.push_back({table, column, 1});
      }
    }
    for (const std::size_t target : port.joined)
      pieces.push_back({targets_[target], 0, targets_[target].size(1)});
  }
}

std::optional<StepTable::Place> StepTable::first_missing(std::size_t port,
                                                         const RowList& rows) const {
  std::optional<Place> found;
  for_each_chunk(*this, rows, [&](const Batch& batch) {
    if (found)
      return;
    const at::Tensor& values = batch.inputs[port];
    const at::Tensor places =
        (c10::isFloatingType(values.scalar_type()) ? values.isnan() : values.lt(0)).nonzero();
    if (places.size(0) > 0) {
      found = {batch.rows[places[0][0]].item<std::int64_t>(),
               static_cast<std::size_t>(places[0][1].item<std::int64_t>())};
    }
  });
  return found;
}

std::optional<StepTable::Place> StepTable::first_change(std::size_t port) const {
  const at::Tensor groups = rows_.groups();
  std::optional<Place> found;
  at::Tensor last;  // row of the chunk before, [1, width]
  for_each_chunk(*this, RowList::range(0, rows_.rows()), [&](const Batch& batch) {
    if (found)
      return;
    const std::int64_t begin = batch.rows[0].item<std::int64_t>();
    const std::int64_t above = last.defined() ? begin - 1 : begin;
    const at::Tensor values =
        last.defined() ? at::cat({last, batch.inputs[port]}) : batch.inputs[port].clone();
    const std::int64_t count = values.size(0);
    at::Tensor differs = values.slice(0, 1).ne(values.slice(0, 0, count - 1));
    if (groups.defined()) {
      const at::Tensor of = groups.narrow(0, above, count);
      differs.logical_and_(of.slice(0, 1).eq(of.slice(0, 0, count - 1)).unsqueeze(1));
    }
    last = values.narrow(0, count - 1, 1);
    const at::Tensor places = differs.nonzero();
    if (places.size(0) > 0) {
      found = {above + 1 + places[0][0].item<std::int64_t>(),
               static_cast<std::size_t>(places[0][1].item<std::int64_t>())};
    }
  });
  return found;
}

void StepTable::expect_unchanged() const {
  if (lies_in_memory_ != nullptr)
    lies_in_memory_->expect_unchanged();
}

void StepTable::copy_inputs(std::span<const std::int64_t> firsts, std::span<const StepRange> ranges,
                            const std::vector<bool>& has_steps,
                            std::vector<at::Tensor>& out) const {
  ReadRows read_before;
  out.resize(ports_.size());
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    const WindowPort& port = ports_[i];
    std::vector<std::int64_t> shape{width_of(port)};
    if (has_steps[i])
      shape.insert(shape.begin(), ranges[i].count);
    const std::vector<Piece>& pieces = pieces_[i];
    if (pieces.size() == 1 && pieces[0].count == pieces[0].table.size(1) &&
        pieces[0].table.scalar_type() == port.spec.dtype) {
      copy_stretches(pieces[0].table, firsts, ranges[i].offset, ranges[i].count, shape, out[i]);
      continue;
    }
    make_fit(static_cast<std::int64_t>(firsts.size()), shape, port.spec.dtype, out[i]);
    if (pieces.empty()) {
      read(port, firsts, ranges[i], read_before, out[i].view({-1, width_of(port)}));
    } else {
      copy_pieces(pieces, firsts, ranges[i], out[i]);
    }
  }
}

void StepTable::copy_pieces(const std::vector<Piece>& pieces, std::span<const std::int64_t> firsts,
                            StepRange range, const at::Tensor& out) const {
  const auto width = static_cast<std::size_t>(out.size(-1));
  std::size_t column = 0;
  for (const Piece& piece : pieces) {
    const auto columns = static_cast<std::size_t>(piece.count);
    const auto table_width = static_cast<std::size_t>(piece.table.size(1));
    const auto table_column = static_cast<std::size_t>(piece.first);
    // `copy` takes places in numbers.
    const auto for_each_step = [&](const auto& copy) {
      std::size_t to = column;
      for (const std::int64_t first : firsts) {
        std::size_t from =
            static_cast<std::size_t>(first + range.offset) * table_width + table_column;
        for (std::int64_t step = 0; step < range.count; ++step) {
          copy(from, to);
          from += table_width;
          to += width;
        }
      }
    };
    if (piece.table.scalar_type() == out.scalar_type()) {
      const std::size_t size = out.element_size();
      const auto* const in = static_cast<const std::byte*>(piece.table.data_ptr());
      auto* const at = static_cast<std::byte*>(out.data_ptr());
      for_each_step([&](std::size_t from, std::size_t to) {
        std::memcpy(at + to * size, in + from * size, columns * size);
      });
    } else {  // float32 beside float64
      const auto* const in = piece.table.data_ptr<float>();
      auto* const at = out.data_ptr<double>();
      for_each_step(
          [&](std::size_t from, std::size_t to) { std::copy_n(in + from, columns, at + to); });
    }
    column += columns;
  }
}

bool StepTable::is_whole_input(const WindowPort& port) const {
  return port.joined.empty() &&
         static_cast<std::int64_t>(port.columns.size()) == rows_.spec().inputs[port.input].shape[0];
}

/// All rows of a batch in one call: a reader that holds chunks meets each of them once.
void StepTable::read(const WindowPort& port, std::span<const std::int64_t> firsts, StepRange range,
                     ReadRows& read_before, at::Tensor out) const {
  const auto same = std::find_if(read_before.begin(), read_before.end(),
                                 [&](const auto& earlier) { return earlier.first == range; });
  const bool is_first = same == read_before.end();
  Batch& batch = is_first ? read_before.emplace_back(range, Batch()).second : same->second;
  if (is_first) {
    if (is_whole_input(port)) {
      batch.inputs.resize(rows_.spec().inputs.size());
      batch.inputs[port.input] = out;  // to be used
    }
    rows_.gather(rows_of(firsts, range), batch);
  }
  const at::Tensor& input = batch.inputs[port.input];
  if (input.data_ptr() == out.data_ptr())
    return;
  std::int64_t column = 0;
  const auto put = [&](const at::Tensor& values) {
    out.narrow(1, column, values.size(1)).copy_(values);
    column += values.size(1);
  };
  put(is_whole_input(port) ? input
                           : at::index_select(input, 1, at::tensor(port.columns, at::kLong)));
  for (const std::size_t target : port.joined)
    put(batch.targets[target]);
}

void StepTable::do_gather(std::span<const std::int64_t> rows, Batch& out) const {
  expect_unchanged();
  const std::vector<StepRange> ranges(ports_.size());
  copy_inputs(rows, ranges, std::vector<bool>(ports_.size(), false), out.inputs);
  out.targets.resize(targets_.size());
  for (std::size_t i = 0; i < targets_.size(); ++i)
    copy_stretches(targets_[i], rows, 0, 1, spec_.targets[i].shape, out.targets[i]);
  out.position_weights.clear();
  out.weights = at::Tensor();
}

}  // namespace treadle::sequences
