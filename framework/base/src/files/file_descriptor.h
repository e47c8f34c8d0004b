#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace treadle {

/// An open file, closed when it goes. Every failure is a StorageError that names path and reason.
class FileDescriptor {
 public:
  static FileDescriptor open_for_reading(const std::filesystem::path& path);
  /// `flags` as for open(2).
  static FileDescriptor open(const std::filesystem::path& path, int flags,
                             std::string_view what_fails);

  /// Takes an open file; `path` is what messages call it.
  FileDescriptor(std::filesystem::path path, int number);
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&&) = delete;
  ~FileDescriptor();

  /// The number of bytes read, 0 at the end.
  std::size_t read(std::span<std::byte> into) const;
  void write(std::string_view bytes) const;
  void sync() const;
  void truncate(std::uint64_t size) const;
  std::uint64_t size() const;
  /// Reports what the file system could only notice now; the destructor would swallow it.
  void close();

 private:
  [[noreturn]] void fail(std::string_view what) const;

  std::filesystem::path path_;
  int number_;
};

/// Throws StorageError: "run/a.json: cannot be written: No space left on device".
[[noreturn]] void throw_storage_error(const std::filesystem::path& path, std::string_view what,
                                      int error_number);

}  // namespace treadle
