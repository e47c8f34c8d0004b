#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <treadle/base/system/patience.h>

namespace treadle::storages {

/// A file of lines that several processes append to, one at a time, and that all of them read from
/// where they were. A lock (flock) guards each reading and appending; the kernel lets go of it when
/// its process dies.
///
/// Lines that were not written to their end, because their process was killed or the disk was full,
/// are taken back by the next one that has the lock. All calls throw StorageError. Not thread-safe.
class JournalFile {
 public:
  /// Opens or creates the file. A file that has no line yet must have the beginning of
  /// `first_line`, or nothing: the file of somebody else is not cut.
  JournalFile(std::filesystem::path path, std::string first_line);
  ~JournalFile();
  JournalFile(const JournalFile&) = delete;
  JournalFile& operator=(const JournalFile&) = delete;

  /// Holds the lock for as long as it lives.
  class Lock {
   public:
    Lock(Lock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
    Lock& operator=(Lock&&) = delete;
    ~Lock();

   private:
    friend class JournalFile;
    explicit Lock(int file) : file_(file) {}
    int file_;
  };
  /// Waits until nobody else has it.
  Lock lock(Patience patience) const;

  // With the lock:

  /// Calls `read` with each line that is new, without its end, and where it stands: "path:3". What
  /// `read` throws passes through, and the line is new again.
  void read_new(const std::function<void(std::string_view line, const std::string& place)>& read);
  /// Appends a line and syncs it to disk. The file is as it was where that fails. The line is not
  /// new: read_new() leaves it out.
  void append(std::string_view line);

 private:
  void expect_same_file() const;
  void truncate(std::uint64_t size) const;
  [[noreturn]] void fail(std::string_view what) const;

  std::filesystem::path path_;
  std::string first_line_;
  int file_;
  std::uint64_t read_ = 0;  // bytes
  std::int64_t lines_ = 0;
};

}  // namespace treadle::storages
