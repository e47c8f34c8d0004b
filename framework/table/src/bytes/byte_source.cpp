#include <treadle/table/byte_source.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "decoded_bytes.h"
#include "packed_bytes.h"
#include "read_ahead.h"

namespace treadle::table {
namespace {

std::string reason() {
  return std::generic_category().message(errno);
}

/// The bytes as they are stored.
class FileBytes final : public ByteSource {
 public:
  FileBytes(const std::filesystem::path& path, std::string shown)
      : shown_(std::move(shown)), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) {
      throw DataError(shown_ +
                      (errno == ENOENT ? ": no such file" : ": cannot be opened: " + reason()));
    }
    struct stat status {};
    if (::fstat(descriptor_, &status) == 0 && S_ISDIR(status.st_mode)) {
      ::close(descriptor_);
      throw DataError(shown_ + ": is a folder; \"path\" must name a file");
    }
  }
  ~FileBytes() override { ::close(descriptor_); }

 private:
  std::size_t do_read(char* to, std::size_t room) override {
    std::size_t size = 0;
    while (size < room) {
      const ssize_t count = ::read(descriptor_, to + size, room - size);
      if (count < 0 && errno == EINTR)
        continue;
      if (count < 0)
        throw ByteError(shown_, "cannot be read: " + reason());
      if (count == 0)
        break;
      size += static_cast<std::size_t>(count);
    }
    return size;
  }

  void do_skip(std::size_t count) override {
    // A pipe cannot be read at another place.
    if (::lseek(descriptor_, static_cast<off_t>(count), SEEK_CUR) < 0)
      ByteSource::do_skip(count);
  }

  std::string shown_;
  int descriptor_;
};

/// Bytes whose first ones were looked at.
class PeekedBytes final : public ByteSource {
 public:
  explicit PeekedBytes(std::unique_ptr<ByteSource> from) : from_(std::move(from)) {
    head_.resize(kHead);
    head_.resize(from_->read(head_.data(), kHead));
  }

  std::string_view head() const { return head_; }

 private:
  static constexpr std::size_t kHead = 8;

  std::size_t do_read(char* to, std::size_t room) override {
    const std::size_t first = std::min(room, head_.size() - used_);
    std::memcpy(to, head_.data() + used_, first);
    used_ += first;
    if (first == room)
      return room;
    try {
      return first + from_->read(to + first, room - first);
    } catch (const ByteError&) {
      if (first == 0)
        throw;
      return first;  // the next call throws
    }
  }

  void do_skip(std::size_t count) override {
    const std::size_t first = std::min(count, head_.size() - used_);
    used_ += first;
    if (count > first)
      from_->skip(count - first);
  }

  std::unique_ptr<ByteSource> from_;
  std::string head_;
  std::size_t used_ = 0;
};

/// The encoding that a byte order mark at the start stands for; empty: none, or UTF-8.
std::string marked_encoding(std::string_view head) {
  using namespace std::string_view_literals;
  // In this order: the mark of UTF-32 begins with that of UTF-16.
  if (head.starts_with("\xFF\xFE\0\0"sv) || head.starts_with("\0\0\xFE\xFF"sv))
    return "utf-32";
  if (head.starts_with("\xFF\xFE"sv) || head.starts_with("\xFE\xFF"sv))
    return "utf-16";
  return "";
}

}  // namespace

ByteError::ByteError(const std::string& shown, std::string message)
    : DataError(shown + ": " + message), message_(std::move(message)) {}

ByteError::~ByteError() = default;

void ByteSource::do_skip(std::size_t count) {
  std::vector<char> skipped(std::min<std::size_t>(count, std::size_t{1} << 18));
  while (count > 0) {
    const std::size_t size = read(skipped.data(), std::min(count, skipped.size()));
    if (size == 0)
      return;
    count -= size;
  }
}

std::unique_ptr<ByteSource> open_bytes(const std::filesystem::path& path, const std::string& shown,
                                       const std::string& encoding, const UnpackLimits& limits) {
  auto stored = std::make_unique<PeekedBytes>(std::make_unique<FileBytes>(path, shown));
  const std::string_view packed_head = stored->head();
  const auto unpack = packed_head.starts_with("\x1F\x8B")           ? &unpack_gzip
                      : packed_head.starts_with("\x28\xB5\x2F\xFD") ? &unpack_zstd
                                                                    : nullptr;
  if (unpack != nullptr)
    stored = std::make_unique<PeekedBytes>(unpack(std::move(stored), shown, limits));
  const std::string marked = is_utf8(encoding) ? marked_encoding(stored->head()) : "";
  const bool is_text = marked.empty() && is_utf8(encoding);
  if (is_text && unpack == nullptr)
    return stored;
  if (is_text)
    return read_ahead(std::move(stored));
  return read_ahead(decode_bytes(std::move(stored), shown, marked.empty() ? encoding : marked));
}

std::string likely_encoding(std::string_view bytes) {
  // Latin letters, digits and separators of UTF-16 have a zero in every other byte.
  std::size_t zeros[2] = {0, 0};
  const std::size_t size = std::min<std::size_t>(bytes.size(), 4096);
  for (std::size_t i = 0; i < size; ++i)
    zeros[i % 2] += bytes[i] == '\0' ? 1 : 0;
  if (4 * (zeros[0] + zeros[1]) > size && zeros[0] != zeros[1])
    return zeros[1] > zeros[0] ? "utf-16le" : "utf-16be";
  return "windows-1252";
}

}  // namespace treadle::table
