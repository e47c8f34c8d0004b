#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "format.h"

namespace treadle::parquet {

/// Compresses and decompresses pages; keeps the state of the libraries between them. One thread.
class Compressor {
 public:
  Compressor();
  ~Compressor();
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;

  /// Throws Damage for a codec that is not supported.
  static void check(Codec codec);

  /// Writes `size` bytes to `out`, which has room for them. Throws Damage for bytes that become
  /// another number of bytes, or cannot be decompressed.
  void decompress(Codec codec, std::string_view bytes, char* out, std::size_t size);

  /// Throws Damage where no bytes of this length can become `size` ones: asked before memory is.
  static void check_ratio(Codec codec, std::string_view bytes, std::size_t size);

  /// Appends the bytes, compressed by ZSTD, to `out`.
  void compress(std::string_view bytes, std::string& out);

 private:
  struct State;
  void gunzip(std::string_view bytes, char* out, std::size_t size);

  std::unique_ptr<State> state_;
};

/// CRC-32 as pages have it.
std::uint32_t crc_of(std::string_view bytes);

}  // namespace treadle::parquet
