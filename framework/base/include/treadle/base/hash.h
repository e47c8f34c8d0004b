#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace treadle {

/// A 128-bit hash (XXH3) of everything it was fed, however it was cut into pieces. It detects
/// damage and distinguishes data; it does not protect against forgery.
class ContentHash {
 public:
  ContentHash();
  ~ContentHash();
  ContentHash(ContentHash&&) noexcept;
  ContentHash& operator=(ContentHash&&) noexcept;

  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text))); }

  /// 32 hexadecimal digits, high half first, as `xxhsum -H2` prints. More may follow.
  std::string digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The hash of some bytes, and of a file's content. The latter throws StorageError naming the path
/// when the file cannot be read.
std::string hash_bytes(std::span<const std::byte> bytes);
std::string hash_text(std::string_view text);
std::string hash_file(const std::filesystem::path& path);

/// SHA-256 of a file's content, 64 hexadecimal digits as `sha256sum` prints: for files whose
/// exchange must be noticed. Throws StorageError naming the path when the file cannot be read.
std::string sha256_file(const std::filesystem::path& path);

}  // namespace treadle
