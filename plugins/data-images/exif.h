#pragma once

#include <cstdint>
#include <span>

#include "picture.h"

namespace treadle::images {

/// The orientation in a block of Exif data: a TIFF header and its first directory (CIPA DC-008,
/// 4.6.4). Anything that cannot be read is Orientation::kAsStored, as viewers have it.
Orientation exif_orientation(std::span<const std::uint8_t> tiff);

/// Turns a picture upright. `spare` is memory to work in; the two change places.
void turn_upright(Orientation orientation, Picture& picture, Picture& spare);

}  // namespace treadle::images
