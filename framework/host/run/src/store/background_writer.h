#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace treadle::internal {

/// Does the slow work of several owners on a thread of its own, so that none of them waits for a
/// disk. Not one of TBB's threads: a worker that waits for a disk is a worker less.
///
/// Each owner has a Lane. Of a lane's work one piece is being done and one waits: newer work takes
/// the place of what waits, so an owner that is faster than the disk fills no memory. Lanes take
/// turns. Thread-safe.
class BackgroundWriter {
 public:
  class Lane;

  BackgroundWriter();
  /// Expects that its lanes are gone.
  ~BackgroundWriter();
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

 private:
  void keep_working();
  Lane* next() const;

  std::mutex mutex_;  // guards what follows, and the lanes
  std::condition_variable wake_;
  std::condition_variable done_;
  std::vector<Lane*> lanes_;
  std::uint64_t turns_ = 0;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses the others
};

/// One owner's work. Belongs to one thread.
class BackgroundWriter::Lane {
 public:
  explicit Lane(BackgroundWriter& writer);
  /// Waits until its work is done.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  /// Takes back the work that has not begun; false when there is none.
  bool withdraw();
  /// Whether a piece of work is being done.
  bool is_busy() const;
  /// Hands in work, in place of what waits. After a failure nothing is done any more.
  void submit(std::function<void()> work);
  /// Waits until everything that was handed in is done or has failed.
  void wait();
  /// Throws what a piece of work threw, each time. Costs a load.
  void expect_no_failure() const;

 private:
  friend class BackgroundWriter;

  bool is_idle() const { return !waiting_ && !is_busy_; }

  BackgroundWriter& writer_;
  std::function<void()> waiting_;
  bool is_busy_ = false;
  std::uint64_t last_turn_ = 0;
  std::exception_ptr failure_;
  std::atomic<bool> has_failed_{false};  // set after failure_, which then stays as it is
};

}  // namespace treadle::internal
