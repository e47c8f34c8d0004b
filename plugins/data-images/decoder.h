#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "picture.h"

namespace treadle::images {

/// Decodes one format. Stateless: one object serves all threads.
///
/// Bytes come from strangers. Everything that is wrong with them is a BadImage; warnings of a
/// library, which it would paint over with gray, are errors as well. Memory is bounded by the
/// pixels that header() reports, which the caller compares with its limit before decode().
class Decoder {
 public:
  virtual ~Decoder() = default;

  /// Whether these are the first bytes of a file of this format.
  virtual bool recognizes(std::span<const std::uint8_t> file) const = 0;
  virtual PictureHeader header(std::span<const std::uint8_t> file) const = 0;
  /// Pixels as stored, of 8 bits per channel. `out` is reused.
  virtual void decode(std::span<const std::uint8_t> file, Wanted wanted, Picture& out) const = 0;
};

/// libjpeg-turbo: baseline and progressive; gray, YCbCr, RGB, CMYK and YCCK, the latter two as RGB.
const Decoder& jpeg_decoder();
/// libpng: every color type and depth, also interlaced. 16 bits are rounded to 8.
const Decoder& png_decoder();
/// libwebp: lossy and lossless. Animations are refused.
const Decoder& webp_decoder();

/// The decoder that recognizes the content, whatever the file is called. Throws BadImage.
const Decoder& decoder_for(std::span<const std::uint8_t> file);

/// Throws BadImage where a picture of this size has no or more than `max_pixels` pixels.
void expect_decodable(PictureSize size, std::int64_t max_pixels);

}  // namespace treadle::images
