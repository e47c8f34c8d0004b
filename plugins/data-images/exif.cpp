#include "exif.h"

#include <cstddef>
#include <cstring>
#include <utility>

namespace treadle::images {
namespace {

constexpr std::uint32_t kOrientationTag = 0x0112;

/// Numbers in a TIFF block, in its byte order; 0 behind its end.
class TiffNumbers {
 public:
  explicit TiffNumbers(std::span<const std::uint8_t> bytes)
      : bytes_(bytes), is_little_(bytes.size() > 1 && bytes[0] == 'I') {}

  std::uint32_t at(std::size_t place, std::size_t width) const {
    if (place > bytes_.size() || bytes_.size() - place < width)
      return 0;
    std::uint32_t number = 0;
    for (std::size_t i = 0; i < width; ++i)
      number = number << 8 | bytes_[place + (is_little_ ? width - 1 - i : i)];
    return number;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  bool is_little_;
};

/// Where the pixel (x, y) of the upright picture is stored.
struct Source {
  std::int64_t x;
  std::int64_t y;
};

Source source_of(Orientation orientation, PictureSize stored, std::int64_t x, std::int64_t y) {
  const std::int64_t right = stored.width - 1;
  const std::int64_t bottom = stored.height - 1;
  switch (orientation) {
    case Orientation::kAsStored:
      break;
    case Orientation::kMirrored:
      return {right - x, y};
    case Orientation::kHalfTurn:
      return {right - x, bottom - y};
    case Orientation::kFlipped:
      return {x, bottom - y};
    case Orientation::kTransposed:
      return {y, x};
    case Orientation::kQuarterTurn:
      return {y, bottom - x};
    case Orientation::kTransverse:
      return {right - y, bottom - x};
    case Orientation::kThreeQuarterTurn:
      return {right - y, x};
  }
  return {x, y};
}

}  // namespace

Orientation exif_orientation(std::span<const std::uint8_t> tiff) {
  const bool has_order =
      tiff.size() >= 8 && tiff[0] == tiff[1] && (tiff[0] == 'I' || tiff[0] == 'M');
  const TiffNumbers numbers(tiff);
  if (!has_order || numbers.at(2, 2) != 42)
    return Orientation::kAsStored;
  const std::size_t directory = numbers.at(4, 4);
  const std::size_t entries = numbers.at(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + 12 * i;
    if (numbers.at(entry, 2) != kOrientationTag)
      continue;
    const std::uint32_t value = numbers.at(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<Orientation>(value) : Orientation::kAsStored;
  }
  return Orientation::kAsStored;
}

void turn_upright(Orientation orientation, Picture& picture, Picture& spare) {
  if (orientation == Orientation::kAsStored)
    return;
  const PictureSize size = PictureHeader{picture.size, orientation}.upright_size();
  spare.become(size, picture.channels);
  const auto channels = static_cast<std::size_t>(picture.channels);
  std::uint8_t* to = spare.pixels.data();
  for (std::int64_t y = 0; y < size.height; ++y) {
    for (std::int64_t x = 0; x < size.width; ++x, to += channels) {
      const Source from = source_of(orientation, picture.size, x, y);
      const auto pixel = static_cast<std::size_t>(from.y * picture.size.width + from.x);
      std::memcpy(to, picture.pixels.data() + pixel * channels, channels);
    }
  }
  std::swap(picture, spare);
}

}  // namespace treadle::images
