#pragma once

#include <array>

namespace treadle::augmentation {

/// Where a pixel of the result comes from: for a pixel at (x, y) from the middle of the image, in
/// pixels to the right and down, the place in the source, from its middle as well:
///
///     (m[0] x + m[1] y + m[2],  m[3] x + m[4] y + m[5])
struct AffineMap {
  std::array<double, 6> m = {1, 0, 0, 0, 1, 0};

  bool is_identity() const { return *this == AffineMap(); }
  bool operator==(const AffineMap&) const = default;
};

/// An affine transformation of an image, as torchvision.transforms.functional.affine has it: the
/// image is sheared, rotated and scaled about its middle, or about `about`, and then moved.
struct AffineChange {
  double angle = 0;                      ///< degrees, clockwise
  std::array<double, 2> translate = {};  ///< pixels to the right and down
  double scale = 1;
  std::array<double, 2> shear = {};  ///< degrees, along x and along y
  std::array<double, 2> about = {};  ///< the fixed point, in pixels from the middle
};

/// The map of a change: the inverse of
///
///     T(translate) T(about) R(angle) S(scale) [1, 0; -tan(shear y), 1] [1, -tan(shear x); 0, 1]
///         T(-about)
AffineMap affine_map(const AffineChange& change);

}  // namespace treadle::augmentation
