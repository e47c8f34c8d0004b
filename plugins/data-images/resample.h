#pragma once

#include <cstdint>
#include <vector>

#include "picture.h"

namespace treadle::images {

/// Scales pictures bilinearly with antialiasing, as Pillow's `resize(size, BILINEAR)` and
/// torchvision's `Resize` for such images do, to the bit.
///
/// An output pixel at position i of a side that becomes `scale` = in / out times shorter is the
/// weighted mean of the input pixels j around (i + 0.5) scale, with weights
/// max(0, 1 - |j + 0.5 - (i + 0.5) scale| / s), s = max(1, scale), normalized to a sum of 1.
/// Weights have 22 fractional bits. Rows are scaled first and rounded to bytes, then columns.
/// (Pillow, libImaging/Resample.c.)
///
/// Keeps its tables and memory for the next picture of the same size. One thread.
class Resampler {
 public:
  /// Only the part of the result from (left, top) on, `part` in size, is computed. Expects it
  /// within `scaled`, and `picture` to have pixels.
  void scale(const Picture& picture, PictureSize scaled, std::int64_t left, std::int64_t top,
             PictureSize part, Picture& out);

 private:
  /// The weights of one side, for a range of output positions.
  struct Weights {
    std::int64_t input = 0;
    std::int64_t output = 0;
    std::int64_t begin = 0;
    std::int64_t count = 0;
    std::int64_t width = 0;             ///< of a row of `weights`
    std::vector<std::int64_t> first;    ///< the first input position of each output position
    std::vector<std::int64_t> taps;     ///< how many there are
    std::vector<std::int32_t> weights;  ///< [count, width]

    void prepare(std::int64_t input_side, std::int64_t output_side, std::int64_t from,
                 std::int64_t positions);
  };

  Weights across_;
  Weights down_;
  Picture rows_;
  std::vector<std::int32_t> sums_;
};

/// The same for masks: the value of the nearest pixel, the one at floor((i + 0.5) in / out).
void scale_nearest(const Picture& picture, PictureSize scaled, std::int64_t left, std::int64_t top,
                   PictureSize part, Picture& out);

}  // namespace treadle::images
