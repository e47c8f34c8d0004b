#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include <webp/decode.h>

#include "decoder.h"
#include "exif.h"

namespace treadle::images {
namespace {

std::uint32_t number_at(const std::uint8_t* bytes) {
  return bytes[0] | bytes[1] << 8 | bytes[2] << 16 | static_cast<std::uint32_t>(bytes[3]) << 24;
}

bool has_name(std::span<const std::uint8_t> file, std::size_t place, std::string_view name) {
  return std::memcmp(file.data() + place, name.data(), 4) == 0;
}

/// The content of the chunk "EXIF"; empty where there is none. Chunks are a name, a length and as
/// many bytes, and one more where that is odd.
std::span<const std::uint8_t> exif_chunk(std::span<const std::uint8_t> file) {
  std::size_t place = 12;
  while (place + 8 <= file.size()) {
    const std::size_t length = number_at(file.data() + place + 4);
    const std::span<const std::uint8_t> rest = file.subspan(place + 8);
    if (length > rest.size())
      return {};
    if (has_name(file, place, "EXIF"))
      return rest.first(length);
    place += 8 + length + length % 2;
  }
  return {};
}

/// Some programs put JPEG's prefix in front.
std::span<const std::uint8_t> without_prefix(std::span<const std::uint8_t> exif) {
  constexpr char kPrefix[] = {'E', 'x', 'i', 'f', '\0', '\0'};
  const bool has_prefix =
      exif.size() > sizeof kPrefix && std::memcmp(exif.data(), kPrefix, sizeof kPrefix) == 0;
  return has_prefix ? exif.subspan(sizeof kPrefix) : exif;
}

[[noreturn]] void refuse(VP8StatusCode status) {
  const bool is_truncated = status == VP8_STATUS_NOT_ENOUGH_DATA || status == VP8_STATUS_SUSPENDED;
  throw BadImage(std::string("cannot be decoded as WebP: ") +
                 (is_truncated                               ? "the file is truncated"
                  : status == VP8_STATUS_OUT_OF_MEMORY       ? "there is not enough memory"
                  : status == VP8_STATUS_UNSUPPORTED_FEATURE ? "it has an unknown feature"
                                                             : "the data is corrupt"));
}

WebPBitstreamFeatures features_of(std::span<const std::uint8_t> file) {
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(file.data(), file.size(), &features);
  if (status != VP8_STATUS_OK)
    refuse(status);
  if (features.has_animation != 0)
    throw BadImage("is an animated WebP; take one picture of it");
  return features;
}

class WebpDecoder final : public Decoder {
 public:
  bool recognizes(std::span<const std::uint8_t> file) const override {
    return file.size() >= 12 && has_name(file, 0, "RIFF") && has_name(file, 8, "WEBP");
  }

  PictureHeader header(std::span<const std::uint8_t> file) const override {
    const WebPBitstreamFeatures features = features_of(file);
    return {{features.width, features.height}, exif_orientation(without_prefix(exif_chunk(file)))};
  }

  void decode(std::span<const std::uint8_t> file, Wanted wanted, Picture& out) const override {
    if (wanted == Wanted::kIndices)
      throw BadImage("is a WebP, which has colors; a mask is a PNG");
    WebPDecoderConfig config;
    if (WebPInitDecoderConfig(&config) == 0)
      throw BadImage("cannot be decoded as WebP: this libwebp is not the one of the build");
    config.input = features_of(file);
    const bool has_alpha = config.input.has_alpha != 0;
    out.become({config.input.width, config.input.height}, has_alpha ? 4 : 3);
    config.output.colorspace = has_alpha ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = out.pixels.data();
    config.output.u.RGBA.stride = static_cast<int>(out.row_bytes());
    config.output.u.RGBA.size = out.pixels.size();
    const VP8StatusCode status = WebPDecode(file.data(), file.size(), &config);
    if (status != VP8_STATUS_OK)
      refuse(status);
  }
};

}  // namespace

const Decoder& webp_decoder() {
  static const WebpDecoder decoder;
  return decoder;
}

}  // namespace treadle::images
