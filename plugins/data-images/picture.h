#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

/// Decoded images, as plain bytes. Nothing here knows libtorch or files.
namespace treadle::images {

/// Why an image cannot be decoded, without the file's name: "is truncated after 3 of 8 rows".
class BadImage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Width and height as stored: an orientation may swap them.
struct PictureSize {
  std::int64_t width = 0;
  std::int64_t height = 0;

  bool operator==(const PictureSize&) const = default;
};

/// How a viewer has to turn the stored pixels: the values 1 to 8 of Exif's tag 0x0112.
enum class Orientation : std::uint8_t {
  kAsStored = 1,
  kMirrored,
  kHalfTurn,
  kFlipped,
  kTransposed,
  kQuarterTurn,  ///< clockwise
  kTransverse,
  kThreeQuarterTurn
};

inline bool swaps_sides(Orientation orientation) {
  return orientation >= Orientation::kTransposed;
}

/// The content of a header, read before any memory is taken for pixels.
struct PictureHeader {
  PictureSize size;
  Orientation orientation = Orientation::kAsStored;

  /// As it is seen.
  PictureSize upright_size() const {
    return swaps_sides(orientation) ? PictureSize{size.height, size.width} : size;
  }
};

/// Pixels as stored, row by row, the channels of a pixel beside each other, a byte each. 1 channel
/// is gray, 2 gray and alpha, 3 red, green and blue, 4 these and alpha (not premultiplied).
///
/// Meant to be reused: `pixels` keeps its memory.
struct Picture {
  PictureSize size;
  int channels = 0;
  std::vector<std::uint8_t> pixels = {};

  std::size_t row_bytes() const {
    return static_cast<std::size_t>(size.width) * static_cast<std::size_t>(channels);
  }
  /// Takes another form; the content is undefined.
  void become(PictureSize new_size, int new_channels) {
    size = new_size;
    channels = new_channels;
    pixels.resize(row_bytes() * static_cast<std::size_t>(size.height));
  }
};

/// The kind of values that a decoder returns.
enum class Wanted : std::uint8_t {
  kColors,  ///< gray, or red, green and blue, with alpha where the file has it
  kIndices  ///< the values in the file: indices into its palette, or gray values; 1 channel
};

}  // namespace treadle::images
