#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace treadle::arrays {

/// Pieces of files in memory, as many as a budget allows; the least recently used one leaves. Safe
/// to use from any thread: two that want one piece read it once, and reading happens outside the
/// lock.
class ChunkCache {
 public:
  using Load = std::function<void(std::span<std::byte> out)>;

  explicit ChunkCache(std::size_t budget_bytes) : budget_(budget_bytes) {}

  /// Makes room for `count` more chunks; the number of the first. For before the first pin().
  std::size_t add_chunks(std::size_t count);

  /// A chunk that stays in memory as long as the pin lives. A thread holds one at a time: it would
  /// wait for itself where the budget is spent.
  class Pin {
   public:
    Pin(ChunkCache& cache, std::size_t chunk) : cache_(cache), chunk_(chunk) {}
    ~Pin() { cache_.release(chunk_); }
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;

    std::span<const std::byte> bytes() const { return cache_.chunks_[chunk_].span(); }

   private:
    ChunkCache& cache_;
    std::size_t chunk_;
  };

  /// Gives the chunk, of `bytes` bytes (at most the budget), after `load` has filled it where it is
  /// not there. A DataError that `load` throws is kept, and thrown each time this chunk is asked
  /// for.
  Pin pin(std::size_t chunk, std::size_t bytes, const Load& load);

  std::size_t budget() const { return budget_; }
  /// The most bytes that were in memory at once, and how often a chunk was loaded.
  std::size_t most_bytes() const;
  std::int64_t loads() const;

 private:
  enum class State : std::uint8_t { kAbsent, kLoading, kPresent, kFailed };
  struct Chunk {
    std::span<const std::byte> span() const { return {bytes.get(), size}; }

    State state = State::kAbsent;
    std::int32_t pins = 0;
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
    std::exception_ptr error;
    std::list<std::size_t>::iterator place;  // in one of the lists, when present
  };

  bool make_room(std::size_t bytes);
  void fill(std::size_t chunk, std::size_t bytes, const Load& load,
            std::unique_lock<std::mutex>& lock);
  void release(std::size_t chunk);

  const std::size_t budget_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // a chunk was loaded, or became idle
  std::vector<Chunk> chunks_;
  std::list<std::size_t> idle_;  // present and not pinned, least recently used first
  std::list<std::size_t> held_;  // present and pinned
  std::size_t bytes_ = 0;
  std::size_t most_bytes_ = 0;
  std::int64_t loads_ = 0;
};

}  // namespace treadle::arrays
