#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "picture.h"
#include "resample.h"

namespace treadle::images {

/// The form that every image of a data set is brought into.
struct PictureForm {
  enum class Mode : std::uint8_t { kRgb, kGray, kRgba };
  /// How a picture of other proportions gets to `size`.
  enum class Fit : std::uint8_t {
    kCrop,     ///< scaled until it covers `size`, then its middle is cut out
    kStretch,  ///< its proportions change
    kPad       ///< scaled until it fits into `size`, in the middle of black
  };

  Mode mode = Mode::kRgb;
  std::optional<PictureSize> size;  ///< absent: as it is
  Fit fit = Fit::kCrop;
  std::int64_t max_pixels = 178956970;

  int channels() const { return mode == Mode::kRgb ? 3 : mode == Mode::kGray ? 1 : 4; }
};

/// Where a picture goes: scaled to `scaled`, of which the part from (left, top) on is put at (x,
/// y).
///
/// Crop, for a picture of w x h pixels and a size of W x H: where W / w >= H / h it is scaled to
/// W x floor(W h / w), otherwise to floor(H w / h) x H; the rest is cut off, of an
/// odd number of rows or columns one more on the right or below, where torchvision's CenterCrop
/// does so (it rounds half to even). For a square this is torchvision's Resize(W) and
/// CenterCrop(W). Pad is Pillow's ImageOps.pad.
struct Placement {
  PictureSize scaled;
  std::int64_t left = 0;
  std::int64_t top = 0;
  PictureSize part;
  std::int64_t x = 0;
  std::int64_t y = 0;
};

Placement place(PictureSize picture, const PictureForm& form);

/// The value of a mask in the padding of its picture.
inline constexpr std::int16_t kNoPixel = -1;

/// Makes what a model sees of the bytes of files. Reuses its memory, so one object per thread.
class PictureMaker {
 public:
  /// Decodes `file` into `out`: planes of the form's channels, each of the form's size, or of the
  /// picture's own where there is none; `expected` is that size. Throws BadImage.
  void make_image(std::span<const std::uint8_t> file, const PictureForm& form, PictureSize expected,
                  std::uint8_t* out);

  /// The same for a mask of a picture whose upright size is `picture`: values as they are in the
  /// file, kNoPixel for padding.
  void make_mask(std::span<const std::uint8_t> file, const PictureForm& form, PictureSize picture,
                 PictureSize expected, std::int16_t* out);

 private:
  Picture decoded_;
  Picture spare_;
  Picture scaled_;
  Resampler resampler_;
};

/// The header of a file, where its pixels are no more than allowed. Throws BadImage.
PictureHeader checked_header(std::span<const std::uint8_t> file, std::int64_t max_pixels);

}  // namespace treadle::images
