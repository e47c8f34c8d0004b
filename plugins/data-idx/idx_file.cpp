#include "idx_file.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include <zlib.h>

#include <treadle/base/error.h>
#include <treadle/base/path_words.h>

namespace treadle::idx {
namespace {

namespace fs = std::filesystem;

struct Named {
  Item item;
  std::size_t size;
  std::string_view name;
};

constexpr std::array kItems{
    Named{Item::kUint8, 1, "uint8"},     Named{Item::kInt8, 1, "int8"},
    Named{Item::kInt16, 2, "int16"},     Named{Item::kInt32, 4, "int32"},
    Named{Item::kFloat32, 4, "float32"}, Named{Item::kFloat64, 8, "float64"}};

const Named* find_item(std::uint8_t number) {
  const auto* const found = std::find_if(kItems.begin(), kItems.end(), [&](const Named& named) {
    return static_cast<std::uint8_t>(named.item) == number;
  });
  return found == kItems.end() ? nullptr : found;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t extent : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "(" + text + ")";
}

/// A file that zlib reads, plain or compressed.
class IdxFile {
 public:
  explicit IdxFile(const fs::path& file) : path_(file.string()), shown_(shown_path(file)) {
    std::error_code error;
    if (!fs::exists(file, error))
      fail("no such file");
    if (!fs::is_regular_file(file, error))
      fail("is no file");
    file_.reset(::gzopen(file.c_str(), "rbe"));
    if (file_ == nullptr)
      fail("cannot be opened");
    ::gzbuffer(file_.get(), 1 << 17);
  }

  [[noreturn]] void fail(const std::string& what) const { throw DataError(shown_ + ": " + what); }

  /// How many bytes of `to` were there. Damage is an error.
  std::size_t read(std::span<std::uint8_t> to) {
    constexpr std::size_t kMost = std::size_t{1} << 30;
    std::size_t done = 0;
    while (done < to.size()) {
      const std::size_t part = std::min(to.size() - done, kMost);
      const int got = ::gzread(file_.get(), to.data() + done, static_cast<unsigned>(part));
      int code = Z_OK;
      const std::string message = ::gzerror(file_.get(), &code);
      if (got < 0 || (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)) {
        // zlib begins with the path.
        const std::size_t reason = message.starts_with(path_ + ": ") ? path_.size() + 2 : 0;
        fail("is damaged: " + message.substr(reason));
      }
      if (got == 0)
        break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  /// Expects everything to have been read: that is where compressed data has its checksum.
  void expect_end() {
    std::array<std::uint8_t, 1> more;
    if (read(more) > 0)
      fail("has more bytes than its shape takes");
    int code = Z_OK;
    ::gzerror(file_.get(), &code);
    if (code == Z_BUF_ERROR)
      fail("is truncated: its compressed data has no end");
  }

 private:
  struct Close {
    void operator()(::gzFile_s* file) const { ::gzclose(file); }
  };

  std::string path_;
  std::string shown_;
  std::unique_ptr<::gzFile_s, Close> file_;
};

IdxHeader read_header(IdxFile& file) {
  std::array<std::uint8_t, 4> first;
  if (file.read(first) < first.size())
    file.fail("is no IDX file: it has fewer than 4 bytes");
  IdxStart start{};
  try {
    start = read_start(first);
  } catch (const DataError& error) {
    file.fail(error.what());
  }
  IdxHeader header{start.item};
  for (std::size_t i = 0; i < start.dimensions; ++i) {
    std::array<std::uint8_t, 4> extent;
    if (file.read(extent) < extent.size())
      file.fail("is truncated: its header should have " + std::to_string(start.dimensions) +
                " dimensions");
    header.shape.push_back(static_cast<std::int64_t>(extent[0]) << 24 | extent[1] << 16 |
                           extent[2] << 8 | extent[3]);
  }
  return header;
}

}  // namespace

std::size_t size_of(Item item) {
  return find_item(static_cast<std::uint8_t>(item))->size;
}

std::string_view name_of(Item item) {
  return find_item(static_cast<std::uint8_t>(item))->name;
}

std::optional<std::int64_t> IdxHeader::bytes() const {
  auto bytes = static_cast<std::int64_t>(size_of(item));
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes))
      return std::nullopt;
  }
  return bytes;
}

IdxStart read_start(std::span<const std::uint8_t, 4> bytes) {
  const Named* const item = find_item(bytes[2]);
  if (bytes[0] != 0 || bytes[1] != 0 || item == nullptr) {
    throw DataError(
        "is no IDX file, plain or compressed by gzip: it does not begin with two zeros and the "
        "type of its numbers");
  }
  if (bytes[3] == 0)
    throw DataError("has no dimensions, and the first one is the row");
  return {item->item, bytes[3]};
}

IdxArray read_idx(const fs::path& path, std::int64_t max_bytes) {
  IdxFile file(path);
  IdxArray array{read_header(file), {}};
  const std::string shape =
      shape_text(array.header.shape) + " of " + std::string(name_of(array.header.item));
  const std::optional<std::int64_t> expected = array.header.bytes();
  if (!expected || *expected > max_bytes) {
    file.fail("has the shape " + shape + ", which is more than \"max_bytes\" allows, " +
              std::to_string(max_bytes) + " bytes");
  }
  // A header can promise what is not there.
  constexpr std::size_t kFirst = std::size_t{16} << 20;
  const auto size = static_cast<std::size_t>(*expected);
  for (std::size_t done = 0; done < size;) {
    array.bytes.resize(std::min(size, std::max(2 * done, kFirst)));
    const std::span<std::uint8_t> rest = std::span(array.bytes).subspan(done);
    const std::size_t got = file.read(rest);
    done += got;
    if (got < rest.size()) {
      file.fail("is truncated: expected " + std::to_string(size) + " bytes for the shape " + shape +
                ", got " + std::to_string(done));
    }
  }
  file.expect_end();
  return array;
}

}  // namespace treadle::idx
