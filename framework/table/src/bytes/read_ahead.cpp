#include "read_ahead.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace treadle::table {
namespace {

/// A ring of pieces: the thread fills them in order, the user empties them in order.
class ReadAhead final : public ByteSource {
 public:
  explicit ReadAhead(std::unique_ptr<ByteSource> from) : from_(std::move(from)) {}
  ~ReadAhead() override {
    if (!thread_.joinable())
      return;
    {
      const std::lock_guard lock(mutex_);
      is_stopped_ = true;
    }
    has_room_.notify_one();
    thread_.join();
  }

 private:
  static constexpr std::size_t kPieces = 4;
  static constexpr std::size_t kPiece = std::size_t{512} << 10;

  struct Piece {
    std::vector<char> bytes = std::vector<char>(kPiece);
    std::size_t size = 0;
    std::exception_ptr error;  // instead of bytes
  };

  std::size_t do_read(char* to, std::size_t room) override {
    if (is_first_) {
      is_first_ = false;
      const std::size_t size = from_->read(to, room);
      has_ended_ = size == 0;
      is_short_ = size < room;
      return size;
    }
    if (!thread_.joinable() && !has_ended_ && is_short_)
      return read_on(to, room);
    std::size_t size = 0;
    while (size < room && !has_ended_) {
      if (!thread_.joinable())
        start();
      const Piece* const piece = current();
      if (piece->error != nullptr) {
        // The bytes before it are used first; the piece stays, for the next call.
        if (size > 0)
          return size;
        std::rethrow_exception(piece->error);
      }
      const std::size_t count = std::min(room - size, piece->size - used_);
      std::memcpy(to + size, piece->bytes.data() + used_, count);
      size += count;
      used_ += count;
      has_ended_ = piece->size == 0;
      if (used_ == piece->size && !has_ended_)
        release();
    }
    return size;
  }

  // Nothing but the end or an error follows.
  std::size_t read_on(char* to, std::size_t room) {
    const std::size_t size = from_->read(to, room);
    has_ended_ = size == 0;
    return size;
  }

  void start() {
    pieces_ = std::make_unique<std::array<Piece, kPieces>>();
    thread_ = std::thread([this] { produce(); });
  }

  // The thread: ends with the bytes, with an error, or once is_stopped_ is set.
  void produce() {
    for (std::uint64_t next = 0;; ++next) {
      {
        std::unique_lock lock(mutex_);
        has_room_.wait(lock, [&] { return is_stopped_ || next - emptied_ < kPieces; });
        if (is_stopped_)
          return;
      }
      Piece& piece = (*pieces_)[next % kPieces];
      try {
        piece.size = from_->read(piece.bytes.data(), kPiece);
      } catch (...) {
        piece.size = 0;
        piece.error = std::current_exception();
      }
      const bool is_last = piece.size == 0;
      {
        const std::lock_guard lock(mutex_);
        filled_ = next + 1;
      }
      has_piece_.notify_one();
      if (is_last)
        return;
    }
  }

  const Piece* current() {
    std::unique_lock lock(mutex_);
    has_piece_.wait(lock, [&] { return filled_ > emptied_; });
    return &(*pieces_)[emptied_ % kPieces];
  }

  void release() {
    used_ = 0;
    {
      const std::lock_guard lock(mutex_);
      ++emptied_;
    }
    has_room_.notify_one();
  }

  std::unique_ptr<ByteSource> from_;  // the thread's, once it has started
  bool is_first_ = true;
  bool is_short_ = false;
  bool has_ended_ = false;
  std::size_t used_ = 0;  // of the current piece

  std::unique_ptr<std::array<Piece, kPieces>> pieces_;
  std::mutex mutex_;
  std::condition_variable has_piece_;
  std::condition_variable has_room_;
  std::uint64_t filled_ = 0;   // pieces, ever
  std::uint64_t emptied_ = 0;  // likewise
  bool is_stopped_ = false;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<ByteSource> read_ahead(std::unique_ptr<ByteSource> from) {
  return std::make_unique<ReadAhead>(std::move(from));
}

}  // namespace treadle::table
