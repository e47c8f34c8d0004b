#include <treadle/core/data/data_provider.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include <treadle/core/components/plugin_call.h>

namespace treadle {
namespace {

/// The rows of a RowReader in their own order.
class RowStream : public BatchStream {
 public:
  RowStream(const RowReader& reader, std::int64_t batch_size)
      : reader_(reader), batch_size_(batch_size) {}

 private:
  bool do_next(Batch& batch) override {
    const std::int64_t count = std::min(batch_size_, reader_.rows() - next_row_);
    if (count <= 0)
      return false;
    rows_.resize(static_cast<std::size_t>(count));
    std::iota(rows_.begin(), rows_.end(), next_row_);
    Batch fresh;
    reader_.gather(rows_, fresh);
    batch = std::move(fresh);
    next_row_ += count;
    return true;
  }

  StateDict do_state() const override {
    StateDict state;
    state.put("next_row", nlohmann::json(next_row_));
    return state;
  }
  void do_load_state(const StateDict& state) override {
    next_row_ = state.value("next_row").get<std::int64_t>();
  }

  const RowReader& reader_;
  std::int64_t batch_size_;
  std::int64_t next_row_ = 0;
  std::vector<std::int64_t> rows_;
};

/// Of a target; null: it may be of any kind.
const std::vector<TargetKind>* kinds_of(const OpenRequest& request, std::string_view target) {
  auto found = request.target_kinds.find(target);
  if (found == request.target_kinds.end())
    found = request.target_kinds.find("");
  return found == request.target_kinds.end() ? nullptr : &found->second;
}

}  // namespace

bool OpenRequest::takes(std::string_view target, TargetKind kind) const {
  const std::vector<TargetKind>* const kinds = kinds_of(*this, target);
  return kinds == nullptr || std::find(kinds->begin(), kinds->end(), kind) != kinds->end();
}

std::optional<TargetKind> OpenRequest::asked_kind(std::string_view target) const {
  if (task != Task::kAuto)
    return task == Task::kClassification ? TargetKind::kClasses : TargetKind::kNumbers;
  const std::vector<TargetKind>* const kinds = kinds_of(*this, target);
  return kinds != nullptr && kinds->size() == 1 ? std::optional(kinds->front()) : std::nullopt;
}

void DataProvider::open(const OpenRequest& request) {
  TREADLE_EXPECTS(!open_, "a data provider is opened once");
  call_plugin(*this, "open", [&] { do_open(request); });
  if (auto* reader = ask<RowReader>(); reader != nullptr)
    reader->set_origin(origin());
  open_ = true;
}

const DataSpec& DataProvider::spec() const {
  TREADLE_EXPECTS(open_, "the data has not been opened");
  return call_plugin(*this, "spec", [&]() -> const DataSpec& { return do_spec(); });
}

std::string DataProvider::content_hash() const {
  TREADLE_EXPECTS(open_, "the data has not been opened");
  return call_plugin(*this, "content_hash", [&] { return do_content_hash(); });
}

std::unique_ptr<BatchStream> DataProvider::stream(std::int64_t batch_size) const {
  TREADLE_EXPECTS(open_, "the data has not been opened");
  TREADLE_EXPECTS(batch_size >= 1, "a batch has at least one row");
  std::unique_ptr<BatchStream> stream =
      call_plugin(*this, "stream", [&] { return do_stream(batch_size); });
  if (stream == nullptr)
    refuse_result(*this, "stream", "returned no stream");
  stream->set_origin(origin());
  return stream;
}

std::optional<std::int64_t> DataProvider::stream_rows() const {
  TREADLE_EXPECTS(open_, "the data has not been opened");
  if (const auto* reader = ask<RowReader>(); reader != nullptr)
    return reader->rows();
  return call_plugin(*this, "stream_rows", [&] { return do_stream_rows(); });
}

std::unique_ptr<BatchStream> DataProvider::do_stream(std::int64_t batch_size) const {
  const auto* reader = ask<RowReader>();
  if (reader == nullptr) {
    refuse_result(*this, "stream", "neither has a do_stream() nor can be read at random");
  }
  return std::make_unique<RowStream>(*reader, batch_size);
}

}  // namespace treadle
