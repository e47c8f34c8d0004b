#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

/// Files that survive a kill at any instant.
namespace treadle {

/// Where a file's content goes while it is being written.
class FileWriter {
 public:
  virtual ~FileWriter();
  /// Throws StorageError naming the path and the reason.
  virtual void write(std::string_view bytes) = 0;
};

/// Replaces a file atomically: readers get the old content or the new.
///
/// The content goes to a temporary name in the same folder, is synced and renamed, and the folder
/// is synced. Throws StorageError naming path and reason ("No space left on device"); the old file
/// is then as it was and the temporary one gone. What `fill` throws passes through, with the same
/// effect. A symbolic link stays, and the file it leads to is replaced.
///
/// A device, a FIFO or /dev/stdout is written straight, as `fill` goes: nothing can be replaced
/// there.
void write_file_atomically(const std::filesystem::path& path,
                           const std::function<void(FileWriter&)>& fill);
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

/// The same for content that comes piece by piece: write() and commit(). An object that goes
/// without commit() leaves the file as it was. One thread.
class AtomicFileWriter final : public FileWriter {
 public:
  explicit AtomicFileWriter(const std::filesystem::path& path);
  ~AtomicFileWriter() override;

  void write(std::string_view bytes) override;
  /// Replaces the file. No call comes after it.
  void commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A file that grows line by line (history.csv, events.jsonl) and can be cut back to an earlier
/// size, as resuming from a checkpoint needs. One thread at a time.
class AppendFile {
 public:
  /// Opens or creates the file. Throws StorageError, as all calls below.
  explicit AppendFile(const std::filesystem::path& path);
  ~AppendFile();
  AppendFile(AppendFile&&) noexcept;
  AppendFile& operator=(AppendFile&&) noexcept;

  /// Appends `line` and a line feed in one write: other processes see it when the call returns.
  /// When that fails, the part that was written is taken back.
  void append_line(std::string_view line);

  /// Makes what was appended survive a power failure.
  void sync();

  /// Bytes in the file.
  std::uint64_t size() const noexcept { return size_; }
  /// Truncates the file to the first `size` bytes. Expects `size` <= size().
  void truncate_to(std::uint64_t size);

 private:
  struct File;
  std::unique_ptr<File> file_;
  std::uint64_t size_ = 0;
};

}  // namespace treadle
