#include "packed_bytes.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#ifdef TREADLE_HAS_ZLIB
#include <zlib.h>
#endif
#ifdef TREADLE_HAS_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif

namespace treadle::table {
namespace {

#if !defined(TREADLE_HAS_ZLIB) || !defined(TREADLE_HAS_ZSTD)
std::unique_ptr<ByteSource> refuse(const std::string& shown, const std::string& format,
                                   const std::string& package) {
  throw DataError(shown + ": is packed with " + format +
                  ", which this build of Treadle cannot unpack; unpack the file, or install " +
                  package + " and build again");
}
#endif

#if defined(TREADLE_HAS_ZLIB) || defined(TREADLE_HAS_ZSTD)
/// The part that the formats share: packed bytes in pieces, the first problem, the limits.
class PackedBytes : public ByteSource {
 protected:
  PackedBytes(std::unique_ptr<ByteSource> from, std::string shown, const UnpackLimits& limits)
      : from_(std::move(from)), shown_(std::move(shown)), limits_(limits), packed_(kPiece) {}

  /// False at the end of the file. Expects that all packed bytes before were used.
  bool read_packed() {
    taken_ += size_;
    size_ = from_->read(packed_.data(), packed_.size());
    return size_ > 0;
  }
  const char* packed() const { return packed_.data(); }
  std::size_t packed_size() const { return size_; }

  /// Sets the problem, after which nothing is read. `used`: the bytes of packed() that were used.
  void set_problem(const std::string& what, std::size_t used) {
    problem_ = what + " (after " + std::to_string(taken_ + used) + " bytes of the file, " +
               std::to_string(unpacked_) + " unpacked)";
  }
  void set_cut_off() {
    set_problem("the packed file ends too early: it was cut off; copy or download it again", size_);
  }
  void set_damaged(const std::string& detail, std::size_t used) {
    set_problem("the packed file is damaged: " + detail, used);
  }
  bool has_problem() const { return !problem_.empty(); }

  /// Counts unpacked bytes; false, with a problem, where they are beyond the limits.
  bool add_unpacked(std::size_t count, std::size_t used) {
    unpacked_ += count;
    if (unpacked_ <= limits_.size || unpacked_ / limits_.ratio <= taken_ + used)
      return true;
    set_problem("the file unpacks to more than " + std::to_string(limits_.ratio) +
                    " times its size, as no table does; if it is one, unpack it first",
                used);
    return false;
  }

 private:
  static constexpr std::size_t kPiece = std::size_t{256} << 10;

  std::size_t do_read(char* to, std::size_t room) final {
    const std::size_t size = has_problem() ? 0 : unpack(to, room);
    if (size == 0 && has_problem())
      throw ByteError(shown_, problem_);
    return size;
  }

  /// As do_read(), with the problem set instead of thrown.
  virtual std::size_t unpack(char* to, std::size_t room) = 0;

  std::unique_ptr<ByteSource> from_;
  std::string shown_;
  UnpackLimits limits_;
  std::vector<char> packed_;
  std::size_t size_ = 0;   // of the bytes in packed_
  std::size_t taken_ = 0;  // packed bytes before those
  std::size_t unpacked_ = 0;
  std::string problem_;
};
#endif

#ifdef TREADLE_HAS_ZLIB
class GzipBytes final : public PackedBytes {
 public:
  GzipBytes(std::unique_ptr<ByteSource> from, std::string shown, const UnpackLimits& limits)
      : PackedBytes(std::move(from), std::move(shown), limits) {
    constexpr int kLargestWindowOfGzip = 15 + 16;
    if (inflateInit2(&stream_, kLargestWindowOfGzip) != Z_OK)
      throw std::bad_alloc();
  }
  ~GzipBytes() override { inflateEnd(&stream_); }

 private:
  std::size_t unpack(char* to, std::size_t room) override {
    std::size_t size = 0;
    while (size < room && !has_problem()) {
      if (stream_.avail_in == 0 && !refill())
        break;
      if (is_between_ && !begin_member())
        continue;
      // Less than 4 GiB at once, which is what zlib counts in.
      const auto asked = static_cast<uInt>(std::min<std::size_t>(room - size, 1U << 30));
      stream_.next_out = reinterpret_cast<Bytef*>(to + size);
      stream_.avail_out = asked;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      const std::size_t count = asked - stream_.avail_out;
      size += count;
      if (!add_unpacked(count, used()))
        break;
      if (status == Z_STREAM_END) {
        is_between_ = true;
      } else if (status == Z_MEM_ERROR) {
        throw std::bad_alloc();
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        set_damaged(stream_.msg == nullptr ? "it cannot be unpacked" : stream_.msg, used());
      }
    }
    return size;
  }

  // False at the end of the file, or with the problem that it ends too early.
  bool refill() {
    if (!read_packed()) {
      if (!is_between_)
        set_cut_off();
      return false;
    }
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed()));
    stream_.avail_in = static_cast<uInt>(packed_size());
    return true;
  }

  // False where no member begins here: zeros, with which tapes were filled, or a problem.
  bool begin_member() {
    constexpr Bytef kFirst = 0x1F;
    while (stream_.avail_in > 0 && *stream_.next_in == 0) {
      ++stream_.next_in;
      --stream_.avail_in;
      has_zeros_ = true;
    }
    if (stream_.avail_in == 0)
      return false;
    if (has_zeros_ || *stream_.next_in != kFirst) {
      set_damaged("other bytes follow the packed ones", used());
      return false;
    }
    is_between_ = false;
    inflateReset(&stream_);
    return true;
  }

  std::size_t used() const { return packed_size() - stream_.avail_in; }

  z_stream stream_{};
  bool is_between_ = false;  // a member has ended, none has begun
  bool has_zeros_ = false;   // after the last member
};
#endif

#ifdef TREADLE_HAS_ZSTD
class ZstdBytes final : public PackedBytes {
 public:
  ZstdBytes(std::unique_ptr<ByteSource> from, std::string shown, const UnpackLimits& limits)
      : PackedBytes(std::move(from), std::move(shown), limits), stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr)
      throw std::bad_alloc();
    constexpr int kLargestWindow = 27;  // 128 MiB
    ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, kLargestWindow);
  }
  ~ZstdBytes() override { ZSTD_freeDStream(stream_); }

 private:
  std::size_t unpack(char* to, std::size_t room) override {
    ZSTD_outBuffer out{to, room, 0};
    bool has_more = true;  // of the file
    while (out.pos < room && !has_problem()) {
      if (in_.pos == in_.size) {
        has_more = read_packed();
        in_ = {packed(), packed_size(), 0};
        if (!has_more && is_between_)
          break;
      }
      const std::size_t before = out.pos;
      const std::size_t status = ZSTD_decompressStream(stream_, &out, &in_);
      if (!add_unpacked(out.pos - before, in_.pos))
        break;
      if (ZSTD_isError(status) != 0) {
        set_damaged(shown_error(status), in_.pos);
      } else {
        is_between_ = status == 0;
        // The decoder writes all it holds, unless there is no room.
        if (!has_more && !is_between_ && out.pos == before)
          set_cut_off();
      }
    }
    return out.pos;
  }

  static std::string shown_error(std::size_t status) {
    switch (ZSTD_getErrorCode(status)) {
      case ZSTD_error_frameParameter_windowTooLarge:
        return "its window is larger than 128 MiB; pack it without --long";
      case ZSTD_error_prefix_unknown:
        return "other bytes follow the packed ones";
      default:
        return ZSTD_getErrorName(status);
    }
  }

  ZSTD_DStream* stream_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  bool is_between_ = false;  // a frame has ended, none has begun
};
#endif

}  // namespace

std::unique_ptr<ByteSource> unpack_gzip([[maybe_unused]] std::unique_ptr<ByteSource> from,
                                        const std::string& shown,
                                        [[maybe_unused]] const UnpackLimits& limits) {
#ifdef TREADLE_HAS_ZLIB
  return std::make_unique<GzipBytes>(std::move(from), shown, limits);
#else
  return refuse(shown, "gzip", "zlib1g-dev");
#endif
}

std::unique_ptr<ByteSource> unpack_zstd([[maybe_unused]] std::unique_ptr<ByteSource> from,
                                        const std::string& shown,
                                        [[maybe_unused]] const UnpackLimits& limits) {
#ifdef TREADLE_HAS_ZSTD
  return std::make_unique<ZstdBytes>(std::move(from), shown, limits);
#else
  return refuse(shown, "Zstandard", "libzstd-dev");
#endif
}

}  // namespace treadle::table
