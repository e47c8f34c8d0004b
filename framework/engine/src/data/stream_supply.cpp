#include "stream_supply.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/core/data/matrix_rows.h>
#include <treadle/engine/stream_rows.h>

namespace treadle::engine {
namespace {

/// Of a stream, while a window is filled.
constexpr std::int64_t kRowsAtOnce = 1024;

class Windows final : public RowSupply {
 public:
  Windows(StreamInput input, Batching batching, RandomStreams random)
      : input_(std::move(input)),
        batching_(batching),
        random_(random),
        batches_per_window_(batching.batches(batching.samples(input_.window_rows))) {
    TREADLE_EXPECTS(input_.data != nullptr && input_.window_rows >= 1 && input_.first_row >= 0,
                    "a stream is read in windows of at least one row");
    TREADLE_EXPECTS(batches_per_window_ >= 1, "a window has at least one batch");
  }

 private:
  std::optional<std::int64_t> batches_per_pass() const override {
    const std::optional<std::int64_t> all = input_.data->stream_rows();
    if (!all || *all == DataProvider::kEndless)
      return all;
    const std::int64_t rows = std::max<std::int64_t>(0, *all - input_.first_row);
    const std::int64_t windows = rows / input_.window_rows;
    const std::int64_t last = rows % input_.window_rows;
    return windows * batches_per_window_ +
           (last > 0 ? batching_.batches(batching_.samples(last), windows == 0) : 0);
  }
  bool reads() const override { return true; }

  std::shared_ptr<const Section> section(const Place& place) override {
    const Place wanted{place.pass, place.batch / batches_per_window_};
    while (window_ != wanted || !has_window_) {
      if (is_at_end_ && window_.pass == place.pass)
        return nullptr;
      read_next(wanted);
    }
    if (newest_ == nullptr || place.batch - newest_->first_batch >=
                                  batching_.batches(newest_->order->size(), window_.batch == 0))
      return nullptr;  // of the last window of the pass
    return newest_;
  }

  /// Reads the window after the newest, or the first of another pass.
  void read_next(const Place& wanted) {
    const bool is_new_pass = !has_window_ || window_.pass != wanted.pass;
    Place next = is_new_pass ? start_of(wanted) : Place{window_.pass, window_.batch + 1};
    newest_ = nullptr;
    Batch rows = stream_->take(input_.window_rows);
    window_ = next;
    has_window_ = true;
    is_at_end_ = rows.size() < input_.window_rows;
    set_mark({next.pass, next.batch + 1}, stream_->state());
    if (rows.size() == 0)
      return;
    auto window = std::make_shared<Window>(rows, input_);
    const auto seed = random_.seed(
        "shuffle", {static_cast<std::uint64_t>(next.pass), static_cast<std::uint64_t>(next.batch)});
    const SampleRequest request{&window->reader, window->all, batching_.batch_size, next.pass,
                                seed};
    auto section = std::make_shared<Section>(Section{
        &window->reader, window, batching_.order(request), next.batch * batches_per_window_});
    newest_ = std::move(section);
  }

  /// Opens the stream at the last mark up to `wanted`, else at the first row of its pass.
  Place start_of(const Place& wanted) {
    stream_ = std::make_unique<StreamRows>(*input_.data, std::min(kRowsAtOnce, input_.window_rows));
    const std::lock_guard lock(marks_mutex_);
    auto after = marks_.upper_bound(wanted);
    if (after != marks_.begin() && std::prev(after)->first.pass == wanted.pass) {
      --after;
      stream_->load_state(after->second);
      return after->first;
    }
    const Place first{wanted.pass, 0};
    stream_->skip(input_.first_row);
    marks_[first] = stream_->state();
    return first;
  }

  void restart(const Place& place) override {
    const Place wanted{place.pass, place.batch / batches_per_window_};
    if (has_window_ && window_ == wanted && newest_ != nullptr)
      return;  // it is still here
    has_window_ = false;
    is_at_end_ = false;
    newest_ = nullptr;
  }

  StateDict mark(const Place& place) const override {
    const Place window{place.pass, place.batch / batches_per_window_};
    const std::lock_guard lock(marks_mutex_);
    const auto found = marks_.find(window);
    return found == marks_.end() ? StateDict() : found->second;
  }
  void load_mark(const Place& place, const StateDict& mark) override {
    set_mark({place.pass, place.batch / batches_per_window_}, mark);
  }
  void set_mark(const Place& window, StateDict mark) {
    const std::lock_guard lock(marks_mutex_);
    marks_[window] = std::move(mark);
  }
  void forget_before(const Place& place) override {
    const Place window{place.pass, place.batch / batches_per_window_};
    const std::lock_guard lock(marks_mutex_);
    marks_.erase(marks_.begin(), marks_.lower_bound(window));
  }

  /// The rows of one window, which go by their numbers in it; a batch has those in the stream.
  struct Window {
    class Reader final : public RowReader {
     public:
      Reader(const Batch& rows, const StreamInput& input)
          : numbers_(rows.rows.contiguous()), rows_(matrices_of(rows, input.data->spec())) {}

     private:
      const DataSpec& do_spec() const override { return rows_.spec(); }
      std::int64_t do_rows() const override { return rows_.rows(); }
      void do_gather(std::span<const std::int64_t> rows, Batch& out) const override {
        rows_.gather(rows, out);
        std::int64_t* numbers = out.rows.data_ptr<std::int64_t>();
        const std::int64_t* of_window = numbers_.data_ptr<std::int64_t>();
        for (std::int64_t i = 0; i < out.rows.size(0); ++i)
          numbers[i] = of_window[numbers[i]];
      }
      std::string do_describe_row(std::int64_t row) const override {
        return "row " + std::to_string(numbers_.data_ptr<std::int64_t>()[row]);
      }
      at::Tensor do_targets(std::size_t target) const override { return rows_.targets(target); }
      at::Tensor do_position_weights(std::size_t target) const override {
        return rows_.position_weights(target);
      }
      at::Tensor do_lengths(std::size_t input) const override { return rows_.lengths(input); }

      at::Tensor numbers_;  // int64 [rows], of the stream
      MatrixRows rows_;
    };

    Window(const Batch& rows, const StreamInput& input) : reader(rows, input) {
      all.resize(static_cast<std::size_t>(reader.rows()));
      std::iota(all.begin(), all.end(), 0);
    }

    Reader reader;
    std::vector<std::int64_t> all;
  };

  const StreamInput input_;
  const Batching batching_;
  const RandomStreams random_;
  const std::int64_t batches_per_window_;

  std::unique_ptr<StreamRows> stream_;
  bool has_window_ = false;
  Place window_;  // pass and number of the newest window
  bool is_at_end_ = false;
  std::shared_ptr<const Section> newest_;

  mutable std::mutex marks_mutex_;
  std::map<Place, StateDict> marks_;  // by pass and window: where the stream stands before it
};

}  // namespace

std::unique_ptr<RowSupply> supply_of_stream(StreamInput input, Batching batching,
                                            RandomStreams random) {
  return std::make_unique<Windows>(std::move(input), batching, random);
}

}  // namespace treadle::engine
