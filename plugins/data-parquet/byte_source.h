#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace treadle::parquet {

/// A file of which any part can be read. Functions are thread-safe.
class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;

  virtual std::uint64_t size() const = 0;
  /// Throws Damage where the bytes are not there (any more), or cannot be read.
  virtual void read(std::uint64_t offset, char* to, std::size_t count) const = 0;
};

/// A file, open as long as the object.
class FileSource final : public ByteSource {
 public:
  /// Throws DataError "FILE: cannot be read: …".
  FileSource(const std::filesystem::path& path, const std::string& shown);
  ~FileSource() override;

  std::uint64_t size() const override { return size_; }
  void read(std::uint64_t offset, char* to, std::size_t count) const override;

 private:
  int descriptor_;
  std::uint64_t size_ = 0;
};

/// Bytes of the caller, who keeps them.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t size() const override { return bytes_.size(); }
  void read(std::uint64_t offset, char* to, std::size_t count) const override;

 private:
  std::string_view bytes_;
};

}  // namespace treadle::parquet
