#include <treadle/core/data/row_reader.h>

#include <algorithm>
#include <cstring>

#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>

#include <treadle/base/error.h>
#include <treadle/base/time_text.h>
#include <treadle/core/components/plugin_call.h>
#include <treadle/core/data/data_spec.h>

namespace treadle {
namespace {

at::Tensor index_tensor(std::span<const std::int64_t> rows, at::Tensor reusable) {
  const auto count = static_cast<std::int64_t>(rows.size());
  if (!reusable.defined() || reusable.dim() != 1 || reusable.size(0) != count) {
    reusable = at::empty({count}, at::kLong);
  }
  if (count > 0)
    std::memcpy(reusable.data_ptr<std::int64_t>(), rows.data(), rows.size_bytes());
  return reusable;
}

/// By the numbers of the rows that were asked for: a reader may have put others into the batch.
at::Tensor groups_of(std::span<const std::int64_t> rows, const at::Tensor& groups,
                     at::Tensor reusable) {
  if (!groups.defined())
    return {};
  const auto count = static_cast<std::int64_t>(rows.size());
  if (!reusable.defined() || reusable.dim() != 1 || reusable.size(0) != count)
    reusable = at::empty({count}, at::kLong);
  const auto* const from = groups.data_ptr<std::int64_t>();
  const std::int64_t stride = groups.stride(0);
  auto* const to = reusable.data_ptr<std::int64_t>();
  std::transform(rows.begin(), rows.end(), to,
                 [&](std::int64_t row) { return from[row * stride]; });
  return reusable;
}

}  // namespace

const DataSpec& RowReader::spec() const {
  return call_plugin(*this, "spec", [&]() -> const DataSpec& { return do_spec(); });
}

std::int64_t RowReader::rows() const {
  return call_plugin(*this, "rows", [&] { return do_rows(); });
}

at::Tensor RowReader::targets(std::size_t target) const {
  TREADLE_EXPECTS(target < spec().targets.size(), "the data has no such target");
  return call_plugin(*this, "targets", [&] { return do_targets(target); });
}

at::Tensor RowReader::position_weights(std::size_t target) const {
  TREADLE_EXPECTS(target < spec().targets.size(), "the data has no such target");
  return call_plugin(*this, "position_weights", [&] { return do_position_weights(target); });
}

at::Tensor RowReader::lengths(std::size_t input) const {
  TREADLE_EXPECTS(input < spec().inputs.size(), "the data has no such input");
  return call_plugin(*this, "lengths", [&] { return do_lengths(input); });
}

at::Tensor RowReader::groups() const {
  return call_plugin(*this, "groups", [&] { return do_groups(); });
}

at::Tensor RowReader::timestamps() const {
  return call_plugin(*this, "timestamps", [&] { return do_timestamps(); });
}

at::Tensor RowReader::label_ends() const {
  return call_plugin(*this, "label_ends", [&] { return do_label_ends(); });
}

at::Tensor RowReader::known_from() const {
  return call_plugin(*this, "known_from", [&] { return do_known_from(); });
}

std::string RowReader::describe_time(std::int64_t row) const {
  const at::Tensor times = timestamps();
  if (!times.defined())
    return "";
  return time_text(times.data_ptr<double>()[row], spec().has_dates);
}

std::string RowReader::describe_row(std::int64_t row) const {
  return call_plugin(*this, "describe_row", [&] { return do_describe_row(row); });
}

void RowReader::gather(std::span<const std::int64_t> rows, Batch& out) const {
  const std::int64_t count = this->rows();
  const auto outside = std::find_if(rows.begin(), rows.end(),
                                    [count](std::int64_t row) { return row < 0 || row >= count; });
  TREADLE_EXPECTS(outside == rows.end(), "row " + std::to_string(*outside) + " of " +
                                             std::to_string(count) + " was asked for");
  out.rows = index_tensor(rows, std::move(out.rows));
  call_plugin(*this, "gather", [&] { do_gather(rows, out); });
  out.original_targets = out.targets;  // handles: no copy
  out.groups = groups_of(rows, groups(), std::move(out.groups));
}

std::string RowReader::do_describe_row(std::int64_t row) const {
  return "row " + std::to_string(row);
}

void gather_rows(const at::Tensor& source, const at::Tensor& index, at::Tensor& out) {
  if (!source.defined()) {
    out = at::Tensor();
    return;
  }
  const bool fits = out.defined() && out.scalar_type() == source.scalar_type() &&
                    out.dim() == source.dim() && out.size(0) == index.size(0) &&
                    out.sizes().slice(1).equals(source.sizes().slice(1)) && out.is_contiguous();
  if (fits) {
    at::index_select_out(out, source, 0, index);
  } else {
    out = at::index_select(source, 0, index);
  }
}

}  // namespace treadle
