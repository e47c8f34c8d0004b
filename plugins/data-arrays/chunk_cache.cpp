#include "chunk_cache.h"

#include <algorithm>
#include <utility>

#include <treadle/base/error.h>

namespace treadle::arrays {

std::size_t ChunkCache::add_chunks(std::size_t count) {
  const std::size_t first = chunks_.size();
  chunks_.resize(first + count);
  return first;
}

ChunkCache::Pin ChunkCache::pin(std::size_t number, std::size_t bytes, const Load& load) {
  TREADLE_EXPECTS(bytes <= budget_, "a chunk fits into the budget");
  std::unique_lock lock(mutex_);
  Chunk& chunk = chunks_[number];
  while (chunk.state != State::kPresent) {
    if (chunk.state == State::kFailed)
      std::rethrow_exception(chunk.error);
    if (chunk.state == State::kAbsent && make_room(bytes)) {
      fill(number, bytes, load, lock);
    } else {
      // Another thread loads it, or others hold everything: they let go without waiting for
      // anybody.
      changed_.wait(lock);
    }
  }
  if (chunk.pins++ == 0)
    held_.splice(held_.end(), idle_, chunk.place);
  return Pin(*this, number);
}

bool ChunkCache::make_room(std::size_t bytes) {
  while (bytes_ + bytes > budget_) {
    if (idle_.empty())
      return false;
    Chunk& leaving = chunks_[idle_.front()];
    idle_.pop_front();
    bytes_ -= leaving.size;
    leaving.bytes.reset();
    leaving.state = State::kAbsent;
  }
  return true;
}

void ChunkCache::fill(std::size_t number, std::size_t bytes, const Load& load,
                      std::unique_lock<std::mutex>& lock) {
  Chunk& chunk = chunks_[number];
  chunk.state = State::kLoading;
  bytes_ += bytes;
  most_bytes_ = std::max(most_bytes_, bytes_);
  ++loads_;
  lock.unlock();
  std::unique_ptr<std::byte[]> loaded;
  std::exception_ptr error;
  bool is_kept = false;
  try {
    loaded = std::make_unique_for_overwrite<std::byte[]>(bytes);
    load({loaded.get(), bytes});
  } catch (const DataError&) {
    error = std::current_exception();
    is_kept = true;
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  if (error) {
    chunk.state = is_kept ? State::kFailed : State::kAbsent;
    chunk.error = error;
    bytes_ -= bytes;
  } else {
    chunk.state = State::kPresent;
    chunk.bytes = std::move(loaded);
    chunk.size = bytes;
    chunk.place = idle_.insert(idle_.end(), number);
  }
  changed_.notify_all();
  if (error)
    std::rethrow_exception(error);
}

void ChunkCache::release(std::size_t number) {
  const std::lock_guard lock(mutex_);
  Chunk& chunk = chunks_[number];
  if (--chunk.pins > 0)
    return;
  idle_.splice(idle_.end(), held_, chunk.place);
  changed_.notify_all();
}

std::size_t ChunkCache::most_bytes() const {
  const std::lock_guard lock(mutex_);
  return most_bytes_;
}

std::int64_t ChunkCache::loads() const {
  const std::lock_guard lock(mutex_);
  return loads_;
}

}  // namespace treadle::arrays
