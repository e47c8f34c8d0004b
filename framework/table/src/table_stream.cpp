#include "table_stream.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>
#include <treadle/core/data/chunked_stream.h>

#include "table_reader.h"
#include "values/rows_hash.h"

namespace treadle::table {
namespace {

/// Rows that are read at a time: 8192, fewer where they are wide.
std::int64_t rows_in_chunk(const TableLayout& layout) {
  constexpr std::int64_t kMostValues = std::int64_t{1} << 21;
  const auto width = static_cast<std::int64_t>(layout.features.size() + layout.targets.size());
  return std::clamp<std::int64_t>(kMostValues / width, 64, 8192);
}

at::Tensor as_number(const at::Tensor& tensor, bool is_wide) {
  return is_wide && tensor.scalar_type() == at::kFloat ? tensor.to(at::kDouble) : tensor;
}

std::uint64_t short_hash(const std::string& digits) {
  return std::stoull(digits.substr(0, 16), nullptr, 16);
}

}  // namespace

StreamedTable::StreamedTable(std::unique_ptr<TableSource> source, MakeSource make,
                             const TableOptions& options, const OpenRequest& request,
                             const TableDescription* known)
    : make_(std::move(make)), options_(options), request_(request) {
  const TableReading reading(*source, options_, request_, known);
  TableRows rows(*source, reading.plan());
  rows_in_chunk_ = rows_in_chunk(reading.layout());
  types_.wide_numbers.resize(reading.layout().ports.size());
  types_.wide_targets.resize(reading.layout().targets.size());
  auto positions = std::make_shared<RowPositions>();
  ContentHash hash;
  std::int64_t dropped = 0;
  bool has_weight = false;
  for (bool more = true; more;) {
    Chunk& chunk = chunks_.emplace_back();
    chunk.begin = source->bookmark();
    more = source->read(rows, rows_in_chunk_);
    ParsedRows parsed = rows.take_rows();
    const std::string digest = hash_of_rows(parsed, rows.so_far());
    chunk.hash = short_hash(digest);
    hash.update(digest);
    dropped += parsed.dropped;
    positions->add(*parsed.positions);
    for (std::size_t i = 0; i < parsed.numbers.size(); ++i)
      types_.wide_numbers[i] = types_.wide_numbers[i] || parsed.numbers[i].values.is_wide();
    for (std::size_t i = 0; i < parsed.target_numbers.size(); ++i)
      types_.wide_targets[i] = types_.wide_targets[i] || parsed.target_numbers[i].values.is_wide();
    types_.wide_weights = types_.wide_weights || parsed.weights.is_wide();
    if (parsed.weights.size() > 0 && !has_weight) {
      const auto count = static_cast<std::int64_t>(parsed.weights.size());
      has_weight = parsed.weights.release({count}).ne(0).any().item<bool>();
    }
  }
  ParsedRows last = rows.finish();
  last.dropped = dropped;
  const bool is_weighted =
      reading.layout().weight && request_.purpose != OpenRequest::Purpose::kPredict;
  if (is_weighted && positions->rows() > 0 && !has_weight)
    throw DataError(source->shown() + ": every row has the weight 0");
  Table table = reading.describe(std::move(last), positions->rows());
  description_ = std::move(table.description);
  spec_ = std::move(table.matrices.spec);
  for (PortSpec& port : spec_.inputs) {
    for (std::size_t i = 0; i < description_.layout.ports.size(); ++i) {
      const std::string& name = description_.layout.ports[i];
      if (port.dtype != at::kLong && port.name == (name.empty() ? "features" : name))
        port.dtype = types_.wide_numbers[i] ? at::kDouble : at::kFloat;
    }
  }
  positions_ = std::move(positions);
  hash.update(treadle::to_json(spec_).dump());
  content_hash_ = hash.digest();
}

/// One pass, with a source of its own.
class StreamedTable::Stream final : public ChunkedStream {
 public:
  Stream(const StreamedTable& table, std::int64_t batch_size)
      : ChunkedStream(batch_size),
        table_(table),
        source_(table.make_()),
        reading_(*source_, table.options_, table.request_, &table.description_) {}

 private:
  Chunk do_load(std::int64_t number, Batch& batch) override;

  const StreamedTable& table_;
  std::unique_ptr<TableSource> source_;
  TableReading reading_;
};

ChunkedStream::Chunk StreamedTable::Stream::do_load(std::int64_t number, Batch& batch) {
  if (number >= static_cast<std::int64_t>(table_.chunks_.size()))
    return Chunk::kEnd;
  const StreamedTable::Chunk& chunk = table_.chunks_[static_cast<std::size_t>(number)];
  source_->go_to(chunk.begin);
  TableRows rows(*source_, reading_.plan());
  source_->read(rows, table_.rows_in_chunk_);
  ParsedRows parsed = rows.finish();
  if (short_hash(hash_of_rows(parsed, parsed)) != chunk.hash)
    throw DataError(source_->shown() + ": was changed while it was read");
  if (parsed.rows == 0)
    return Chunk::kSkipped;
  Table table = reading_.finish(std::move(parsed));
  const Types& types = table_.types_;
  for (std::size_t port = 0; port < table.matrices.inputs.size(); ++port) {
    batch.inputs.push_back(
        as_number(table.matrices.inputs[port], table_.spec_.inputs[port].dtype == at::kDouble));
  }
  for (std::size_t target = 0; target < table.matrices.targets.size(); ++target)
    batch.targets.push_back(as_number(table.matrices.targets[target], types.wide_targets[target]));
  if (table.matrices.weights.defined())
    batch.weights = as_number(table.matrices.weights, types.wide_weights);
  return Chunk::kRows;
}

std::unique_ptr<BatchStream> StreamedTable::stream(std::int64_t batch_size) const {
  return std::make_unique<Stream>(*this, batch_size);
}

}  // namespace treadle::table
