#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include <treadle/base/error.h>

namespace treadle::table {

/// The bytes of a file in order, once: as they are stored, unpacked, or converted to UTF-8. One
/// user, one thread. Unpacked and converted bytes are produced ahead of their use, by a thread that
/// ends with the source.
///
///     const auto source = open_bytes(path, shown_path(path));
///     while (const std::size_t count = source->read(buffer.data(), buffer.size()))
///       use(buffer.data(), count);
class ByteSource {
 public:
  ByteSource() = default;
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  /// Puts the next bytes at `to` and returns how many: `room` (> 0), fewer only where the bytes end
  /// or an error follows, 0 at the end. Throws ByteError for bytes that cannot be read, unpacked or
  /// converted, after all bytes before them; and again with each call after that.
  std::size_t read(char* to, std::size_t room) { return do_read(to, room); }
  /// Passes over `count` bytes, or over all that are left where these are fewer.
  void skip(std::size_t count) { do_skip(count); }

 protected:
  /// The default reads them.
  virtual void do_skip(std::size_t count);

 private:
  virtual std::size_t do_read(char* to, std::size_t room) = 0;
};

/// Bytes that cannot be read: "FILE: MESSAGE". A reader that counts lines can report "FILE:LINE:
/// MESSAGE": the line of the byte after the last one that was read.
class ByteError final : public DataError {
 public:
  ByteError(const std::string& shown, std::string message);
  ~ByteError() override;

  const std::string& message() const { return message_; }

 private:
  std::string message_;
};

/// When unpacked bytes are refused: above `size`, if they are more than `ratio` times the packed
/// ones. No table of that size repeats itself so much; files made to fill memories and disks do.
struct UnpackLimits {
  std::size_t size = std::size_t{1} << 30;
  std::size_t ratio = 1000;
};

/// Opens a file. gzip (several members) and Zstandard (several frames, windows up to 128 MiB) are
/// recognized by the first bytes, whatever the file's name, and unpacked as they are read. Text in
/// another `encoding` than UTF-8 is converted; UTF-16 and UTF-32 are recognized by their byte order
/// mark. A byte order mark of UTF-8 is passed on.
///
/// `shown` is the file's name in messages. Throws DataError for a file that cannot be opened, is a
/// folder, or is packed in a way that this build cannot unpack.
std::unique_ptr<ByteSource> open_bytes(const std::filesystem::path& path, const std::string& shown,
                                       const std::string& encoding = "utf-8",
                                       const UnpackLimits& limits = {});

/// Whether text can be converted from `encoding`: a name that iconv has, such as "latin1",
/// "windows-1252" or "utf-16".
bool is_encoding(const std::string& encoding);

/// The encoding that text which is not UTF-8 is likely to have, from a part of it that begins with
/// a character: "utf-16le", "utf-16be" or "windows-1252".
std::string likely_encoding(std::string_view bytes);

}  // namespace treadle::table
