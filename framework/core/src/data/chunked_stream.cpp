#include <treadle/core/data/chunked_stream.h>

#include <algorithm>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

namespace treadle {

ChunkedStream::ChunkedStream(std::int64_t batch_size) : batch_size_(batch_size) {
  TREADLE_EXPECTS(batch_size >= 1, "a batch has at least one row");
}

bool ChunkedStream::fill() {
  while (used_ >= chunk_.size()) {
    first_row_ += chunk_.size();
    used_ = 0;
    chunk_ = Batch();
    Batch loaded;
    const Chunk what = do_load(next_chunk_, loaded);
    if (what == Chunk::kEnd)
      return false;
    ++next_chunk_;
    if (what == Chunk::kSkipped)
      continue;
    TREADLE_EXPECTS(!loaded.inputs.empty() && loaded.inputs[0].defined(), "a chunk has inputs");
    const std::int64_t rows = loaded.inputs[0].size(0);
    TREADLE_EXPECTS(rows > 0, "a chunk without rows is skipped");
    if (!loaded.rows.defined())
      loaded.rows = at::arange(first_row_, first_row_ + rows, at::kLong);
    if (loaded.original_targets.empty())
      loaded.original_targets = loaded.targets;
    chunk_ = std::move(loaded);
  }
  return true;
}

bool ChunkedStream::do_next(Batch& batch) {
  std::vector<Batch> parts;
  for (std::int64_t missing = batch_size_; missing > 0 && fill();) {
    const std::int64_t count = std::min(missing, chunk_.size() - used_);
    parts.push_back(chunk_.slice(used_, count));
    used_ += count;
    missing -= count;
  }
  if (parts.empty())
    return false;
  batch = parts.size() == 1 ? std::move(parts.front()) : Batch::join(parts);
  return true;
}

StateDict ChunkedStream::do_state() const {
  const bool is_within = used_ < chunk_.size();
  StateDict state;
  state.put("chunk", nlohmann::json(is_within ? next_chunk_ - 1 : next_chunk_));
  state.put("used", nlohmann::json(is_within ? used_ : 0));
  state.put("first_row", nlohmann::json(is_within ? first_row_ : first_row_ + chunk_.size()));
  return state;
}

void ChunkedStream::do_load_state(const StateDict& state) {
  chunk_ = Batch();
  used_ = 0;
  next_chunk_ = state.value("chunk").get<std::int64_t>();
  first_row_ = state.value("first_row").get<std::int64_t>();
  const auto used = state.value("used").get<std::int64_t>();
  if (used == 0)
    return;
  if (!fill() || chunk_.size() < used) {
    throw StorageError("chunk " + std::to_string(next_chunk_) +
                       " of the data has fewer rows than when the training was saved; resume with "
                       "the data that it began with");
  }
  used_ = used;
}

}  // namespace treadle
