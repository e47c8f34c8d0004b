#include "codec.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include "bytes.h"

namespace treadle::parquet {
namespace {

constexpr int kZstdLevel = 3;  // the library's own

[[noreturn]] void fail_for_size(Codec codec, std::size_t declared, std::size_t actual) {
  throw Damage("it should have " + std::to_string(declared) + " bytes, but " + name_of(codec) +
               " makes it " + std::to_string(actual));
}

// The length that begins with 4 bits of a token, and goes on where these are full.
std::size_t lz4_length(ByteCursor& cursor, std::size_t nibble) {
  std::size_t length = nibble;
  for (std::uint8_t more = nibble == 15 ? 255 : 0; more == 255; length += more)
    more = cursor.byte();
  return length;
}

// A block of LZ4, as its lz4_Block_format.md has it: literals, then a copy of earlier bytes, which
// may overlap with the bytes it produces.
void decompress_lz4(std::string_view bytes, char* out, std::size_t size) {
  ByteCursor cursor(bytes);
  std::size_t done = 0;
  while (cursor.left() > 0) {
    const std::uint8_t token = cursor.byte();
    const std::string_view literals = cursor.take(lz4_length(cursor, token >> 4));
    if (literals.size() > size - done)
      throw Damage("it should have " + std::to_string(size) + " bytes, but LZ4 makes it more");
    std::copy(literals.begin(), literals.end(), out + done);
    done += literals.size();
    if (cursor.left() == 0)
      break;  // the last sequence has literals alone
    const std::size_t distance = cursor.fixed<std::uint16_t>();
    const std::size_t length = lz4_length(cursor, token & 15) + 4;
    if (distance == 0 || distance > done)
      throw Damage("it is damaged: LZ4 copies from before its beginning");
    if (length > size - done)
      throw Damage("it should have " + std::to_string(size) + " bytes, but LZ4 makes it more");
    if (distance >= length) {
      std::copy_n(out + done - distance, length, out + done);
    } else {
      for (std::size_t i = 0; i < length; ++i)
        out[done + i] = out[done + i - distance];
    }
    done += length;
  }
  if (done != size)
    fail_for_size(Codec::kLz4Raw, size, done);
}

}  // namespace

struct Compressor::State {
  ZSTD_DCtx* decompression = nullptr;
  ZSTD_CCtx* compression = nullptr;
  z_stream stream{};
  bool has_stream = false;

  ~State() {
    ZSTD_freeDCtx(decompression);
    ZSTD_freeCCtx(compression);
    if (has_stream)
      inflateEnd(&stream);
  }
};

Compressor::Compressor() : state_(std::make_unique<State>()) {}
Compressor::~Compressor() = default;

void Compressor::check(Codec codec) {
  switch (codec) {
    case Codec::kUncompressed:
    case Codec::kSnappy:
    case Codec::kGzip:
    case Codec::kZstd:
    case Codec::kLz4Raw:
      return;
    default:
      throw Damage("it is compressed with " + name_of(codec) +
                   ", which is not supported; write the file with ZSTD, SNAPPY or GZIP");
  }
}

void Compressor::check_ratio(Codec codec, std::string_view bytes, std::size_t size) {
  switch (codec) {
    case Codec::kSnappy: {
      std::size_t actual = 0;
      if (snappy_uncompressed_length(bytes.data(), bytes.size(), &actual) != SNAPPY_OK)
        throw Damage("it is damaged: SNAPPY cannot decompress it");
      if (actual != size)
        fail_for_size(codec, size, actual);
      // An element of 3 bytes copies at most 64.
      if (actual / 32 > bytes.size())
        throw Damage("it is damaged: SNAPPY compresses less than that");
      return;
    }
    case Codec::kZstd: {
      const unsigned long long actual = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
      if (actual == ZSTD_CONTENTSIZE_ERROR)
        throw Damage("it is damaged: it is no ZSTD frame");
      // Several frames may follow each other, and one may have several blocks, of at most 128 KiB
      // for 4 bytes.
      if (size / (std::size_t{128} << 10) > bytes.size() / 4 + 1 ||
          (actual != ZSTD_CONTENTSIZE_UNKNOWN && actual > size)) {
        fail_for_size(codec, size,
                      actual == ZSTD_CONTENTSIZE_UNKNOWN ? 0 : static_cast<std::size_t>(actual));
      }
      return;
    }
    case Codec::kLz4Raw:
      // A byte makes a match 255 longer.
      if (size / 256 > bytes.size())
        throw Damage("it should have " + std::to_string(size) + " bytes, more than LZ4 makes of " +
                     std::to_string(bytes.size()));
      return;
    case Codec::kGzip:
      // DEFLATE's ratio is 1032 at most.
      if (size / 1033 > bytes.size())
        throw Damage("it should have " + std::to_string(size) + " bytes, more than GZIP makes of " +
                     std::to_string(bytes.size()));
      return;
    default:
      if (bytes.size() != size)
        fail_for_size(codec, size, bytes.size());
  }
}

void Compressor::decompress(Codec codec, std::string_view bytes, char* out, std::size_t size) {
  switch (codec) {
    case Codec::kUncompressed:
      if (bytes.size() != size)
        fail_for_size(codec, size, bytes.size());
      std::copy(bytes.begin(), bytes.end(), out);
      return;
    case Codec::kSnappy: {
      std::size_t actual = size;
      if (snappy_uncompress(bytes.data(), bytes.size(), out, &actual) != SNAPPY_OK)
        throw Damage("it is damaged: SNAPPY cannot decompress it");
      if (actual != size)
        fail_for_size(codec, size, actual);
      return;
    }
    case Codec::kZstd: {
      if (state_->decompression == nullptr) {
        state_->decompression = ZSTD_createDCtx();
        if (state_->decompression == nullptr)
          throw std::bad_alloc();
      }
      const std::size_t actual =
          ZSTD_decompressDCtx(state_->decompression, out, size, bytes.data(), bytes.size());
      if (ZSTD_isError(actual) != 0)
        throw Damage(std::string("it is damaged: ZSTD: ") + ZSTD_getErrorName(actual));
      if (actual != size)
        fail_for_size(codec, size, actual);
      return;
    }
    case Codec::kGzip:
      return gunzip(bytes, out, size);
    case Codec::kLz4Raw:
      return decompress_lz4(bytes, out, size);
    default:
      check(codec);
  }
}

// Members of gzip may follow each other.
void Compressor::gunzip(std::string_view bytes, char* out, std::size_t size) {
  z_stream& stream = state_->stream;
  constexpr int kEitherHeader = 15 + 32;  // gzip or zlib, whichever there is
  if (!state_->has_stream) {
    if (inflateInit2(&stream, kEitherHeader) != Z_OK)
      throw std::bad_alloc();
    state_->has_stream = true;
  } else {
    inflateReset2(&stream, kEitherHeader);
  }
  // zlib takes what it does not change by a pointer to what it could; pages have less than 2 GiB.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  Bytef none = 0;
  stream.next_out = size == 0 ? &none : reinterpret_cast<Bytef*>(out);
  stream.avail_out = static_cast<uInt>(size);
  for (;;) {
    const int status = inflate(&stream, Z_FINISH);
    if (status != Z_STREAM_END)
      break;
    if (stream.avail_in == 0) {
      if (stream.avail_out != 0)
        fail_for_size(Codec::kGzip, size, size - stream.avail_out);
      return;
    }
    inflateReset(&stream);
  }
  if (stream.avail_out == 0)
    throw Damage("it should have " + std::to_string(size) + " bytes, but GZIP makes it more");
  throw Damage("it is damaged: GZIP cannot decompress it");
}

void Compressor::compress(std::string_view bytes, std::string& out) {
  if (state_->compression == nullptr) {
    state_->compression = ZSTD_createCCtx();
    if (state_->compression == nullptr)
      throw std::bad_alloc();
  }
  const std::size_t begin = out.size();
  out.resize(begin + ZSTD_compressBound(bytes.size()));
  const std::size_t size =
      ZSTD_compressCCtx(state_->compression, out.data() + begin, out.size() - begin, bytes.data(),
                        bytes.size(), kZstdLevel);
  if (ZSTD_isError(size) != 0)
    throw std::bad_alloc();
  out.resize(begin + size);
}

std::uint32_t crc_of(std::string_view bytes) {
  uLong crc = crc32(0, nullptr, 0);
  while (!bytes.empty()) {
    constexpr std::size_t kMost = std::size_t{1} << 30;
    const std::string_view part = bytes.substr(0, kMost);
    crc = crc32(crc, reinterpret_cast<const Bytef*>(part.data()), static_cast<uInt>(part.size()));
    bytes.remove_prefix(part.size());
  }
  return static_cast<std::uint32_t>(crc);
}

}  // namespace treadle::parquet
