#include "colors.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace treadle::images {
namespace {

/// Makes fewer channels of each pixel, `to` of them.
template <typename Change>
void shrink(Picture& picture, int to, Change&& change) {
  const auto from_step = static_cast<std::size_t>(picture.channels);
  const std::size_t count = picture.pixels.size() / from_step;
  const std::uint8_t* from = picture.pixels.data();
  std::uint8_t* out = picture.pixels.data();
  for (std::size_t i = 0; i < count; ++i, from += from_step, out += to)
    change(from, out);
  picture.become(picture.size, to);
}

std::uint8_t luma(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((rgb[0] * 19595U + rgb[1] * 38470U + rgb[2] * 7471U + 0x8000U) >>
                                   16);
}

/// Gray and alpha become four channels, from the last pixel on, in place.
void spread_gray(Picture& picture) {
  const std::size_t count = picture.pixels.size() / 2;
  picture.become(picture.size, 4);
  std::uint8_t* const pixels = picture.pixels.data();
  for (std::size_t i = count; i-- > 0;) {
    const std::uint8_t gray = pixels[2 * i];
    const std::uint8_t alpha = pixels[2 * i + 1];
    std::fill_n(pixels + 4 * i, 3, gray);
    pixels[4 * i + 3] = alpha;
  }
}

/// a b / 255, rounded.
std::uint8_t product(unsigned a, unsigned b) {
  const unsigned scaled = a * b + 128;
  return static_cast<std::uint8_t>(((scaled >> 8) + scaled) >> 8);
}

}  // namespace

void convert(PictureForm::Mode mode, Picture& picture) {
  const auto first = [](const std::uint8_t* from, std::uint8_t* to) { to[0] = from[0]; };
  switch (mode) {
    case PictureForm::Mode::kRgba:
      if (picture.channels == 2)
        spread_gray(picture);
      return;
    case PictureForm::Mode::kGray:
      if (picture.channels >= 3) {
        shrink(picture, 1, [](const std::uint8_t* from, std::uint8_t* to) { to[0] = luma(from); });
      } else if (picture.channels == 2) {
        shrink(picture, 1, first);
      }
      return;
    case PictureForm::Mode::kRgb:
      if (picture.channels == 4) {
        shrink(picture, 3,
               [](const std::uint8_t* from, std::uint8_t* to) { std::copy_n(from, 3, to); });
      } else if (picture.channels == 2) {
        shrink(picture, 1, first);
      }
  }
}

void premultiply(Picture& picture) {
  if (picture.channels != 4)
    return;
  for (std::size_t i = 0; i < picture.pixels.size(); i += 4) {
    std::uint8_t* const pixel = picture.pixels.data() + i;
    for (int c = 0; c < 3; ++c)
      pixel[c] = product(pixel[c], pixel[3]);
  }
}

void unpremultiply(Picture& picture) {
  if (picture.channels != 4)
    return;
  for (std::size_t i = 0; i < picture.pixels.size(); i += 4) {
    std::uint8_t* const pixel = picture.pixels.data() + i;
    const unsigned alpha = pixel[3];
    if (alpha == 0 || alpha == 255)
      continue;
    for (int c = 0; c < 3; ++c)
      pixel[c] = static_cast<std::uint8_t>(std::min(255U * pixel[c] / alpha, 255U));
  }
}

}  // namespace treadle::images
