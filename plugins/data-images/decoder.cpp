#include "decoder.h"

#include <array>
#include <string>

namespace treadle::images {

const Decoder& decoder_for(std::span<const std::uint8_t> file) {
  const std::array decoders{&jpeg_decoder(), &png_decoder(), &webp_decoder()};
  for (const Decoder* const decoder : decoders) {
    if (decoder->recognizes(file))
      return *decoder;
  }
  throw BadImage(file.empty() ? "is empty" : "is no JPEG, PNG or WebP");
}

void expect_decodable(PictureSize size, std::int64_t max_pixels) {
  const std::string shown = std::to_string(size.width) + "x" + std::to_string(size.height);
  if (size.width <= 0 || size.height <= 0)
    throw BadImage("has no pixels: " + shown);
  if (size.width > max_pixels / size.height) {
    throw BadImage("has " + shown + " pixels, more than \"max_pixels\" allows, " +
                   std::to_string(max_pixels));
  }
}

}  // namespace treadle::images
