#include <treadle/base/hash.h>

// Inlined: the library has no shared state, and one dependency less has to be found at run time.
#define XXH_INLINE_ALL
#include <sha2.h>
#include <xxhash.h>

#include <array>
#include <vector>

#include "file_descriptor.h"

namespace treadle {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 20;

std::string hexadecimal(std::span<const unsigned char> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string hexadecimal(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;  // big endian, so the same text on every machine
  XXH128_canonicalFromHash(&canonical, hash);
  return hexadecimal(canonical.digest);
}

/// Gives `use` the file's bytes, block by block.
template <typename Use>
void for_each_block(const std::filesystem::path& path, Use&& use) {
  const FileDescriptor file = FileDescriptor::open_for_reading(path);
  std::vector<std::byte> block(kBlock);
  while (const std::size_t count = file.read(block))
    use(std::span<const std::byte>(block).first(count));
}

}  // namespace

struct ContentHash::State {
  State() { XXH3_128bits_reset(&xxh3); }
  XXH3_state_t xxh3;
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) {}
ContentHash::~ContentHash() = default;
ContentHash::ContentHash(ContentHash&&) noexcept = default;
ContentHash& ContentHash::operator=(ContentHash&&) noexcept = default;

void ContentHash::update(std::span<const std::byte> bytes) {
  if (!bytes.empty())
    XXH3_128bits_update(&state_->xxh3, bytes.data(), bytes.size());
}

std::string ContentHash::digest() const {
  return hexadecimal(XXH3_128bits_digest(&state_->xxh3));
}

std::string hash_bytes(std::span<const std::byte> bytes) {
  return hexadecimal(XXH3_128bits(bytes.data(), bytes.size()));
}

std::string hash_text(std::string_view text) {
  return hash_bytes(std::as_bytes(std::span(text)));
}

std::string hash_file(const std::filesystem::path& path) {
  ContentHash hash;
  for_each_block(path, [&hash](std::span<const std::byte> bytes) { hash.update(bytes); });
  return hash.digest();
}

std::string sha256_file(const std::filesystem::path& path) {
  SHA2_CTX context;
  SHA256Init(&context);
  for_each_block(path, [&context](std::span<const std::byte> bytes) {
    SHA256Update(&context, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  });
  std::array<std::uint8_t, SHA256_DIGEST_LENGTH> digest{};
  SHA256Final(digest.data(), &context);
  return hexadecimal(digest);
}

}  // namespace treadle
