#include <treadle/engine/stream_rows.h>

#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

namespace treadle::engine {

StreamRows::StreamRows(const DataProvider& data, std::int64_t rows_at_once)
    : data_(data), rows_at_once_(rows_at_once), stream_(data.stream(rows_at_once)) {}

StreamRows::~StreamRows() = default;

bool StreamRows::fill() {
  if (used_ < read_.size())
    return true;
  before_read_ = stream_->state();
  read_ = Batch();
  used_ = 0;
  return stream_->next(read_) && read_.size() > 0;
}

Batch StreamRows::take(std::int64_t rows) {
  std::vector<Batch> parts;
  for (std::int64_t missing = rows; missing > 0 && fill();) {
    const std::int64_t count = std::min(missing, read_.size() - used_);
    parts.push_back(read_.slice(used_, count));
    used_ += count;
    missing -= count;
  }
  return parts.empty() ? Batch() : Batch::join(parts);
}

void StreamRows::skip(std::int64_t rows) {
  for (std::int64_t missing = rows; missing > 0;) {
    if (!fill()) {
      throw DataError("the data has " + std::to_string(rows - missing) + " rows, and the first " +
                      std::to_string(rows) + " are kept for validation; keep fewer");
    }
    const std::int64_t count = std::min(missing, read_.size() - used_);
    used_ += count;
    missing -= count;
  }
}

StateDict StreamRows::do_state() const {
  const bool is_within = used_ < read_.size();
  StateDict state;
  state.put("stream", is_within ? before_read_ : stream_->state());
  state.put("used", nlohmann::json(is_within ? used_ : 0));
  return state;
}

void StreamRows::do_load_state(const StateDict& state) {
  stream_ = data_.stream(rows_at_once_);
  stream_->load_state(state.part("stream"));
  read_ = Batch();
  used_ = 0;
  if (const auto used = state.value("used").get<std::int64_t>(); used > 0) {
    if (!fill() || read_.size() < used) {
      throw StorageError(
          "the stream of the data has ended before the place at which the training was saved; "
          "resume with the data that it began with");
    }
    used_ = used;
  }
}

MatrixRows::Matrices matrices_of(const Batch& rows, const DataSpec& spec) {
  const auto contiguous = [](const std::vector<at::Tensor>& tensors) {
    std::vector<at::Tensor> result;
    for (const at::Tensor& tensor : tensors)
      result.push_back(tensor.defined() ? tensor.contiguous() : tensor);
    return result;
  };
  MatrixRows::Matrices matrices;
  matrices.spec = spec;
  matrices.inputs = contiguous(rows.inputs);
  matrices.targets = contiguous(rows.targets);
  matrices.position_weights = contiguous(rows.position_weights);
  matrices.weights = rows.weights.defined() ? rows.weights.contiguous() : rows.weights;
  return matrices;
}

}  // namespace treadle::engine
