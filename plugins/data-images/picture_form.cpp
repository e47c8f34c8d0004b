#include "picture_form.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>

#include "colors.h"
#include "decoder.h"
#include "exif.h"

namespace treadle::images {
namespace {

/// Half of `length`, as Python's int(round(length / 2)): halves go to the even number.
std::int64_t half_of(std::int64_t length) {
  return length / 2 + (length % 4 == 3 ? 1 : 0);
}

/// As Python's round(a / b * c), at least 1.
std::int64_t rounded(std::int64_t a, std::int64_t b, std::int64_t c) {
  const double exact = static_cast<double>(a) / static_cast<double>(b) * static_cast<double>(c);
  return std::max<std::int64_t>(std::llrint(exact), 1);
}

std::string shown(PictureSize size) {
  return std::to_string(size.width) + "x" + std::to_string(size.height);
}

void expect_size(PictureSize got, PictureSize expected) {
  if (got != expected)
    throw BadImage("has " + shown(got) + " pixels, expected " + shown(expected));
}

/// Copies a picture into planes of `size`, at (x, y); black around it.
void put_planes(const Picture& picture, std::int64_t x, std::int64_t y, PictureSize size,
                int channels, std::uint8_t* out) {
  const auto plane = static_cast<std::size_t>(size.width * size.height);
  if (picture.size != size)
    std::memset(out, 0, plane * static_cast<std::size_t>(channels));
  const auto step = static_cast<std::size_t>(picture.channels);
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
    const bool has_channel = c < step || step == 1;
    const std::size_t source = c < step ? c : 0;
    const bool is_opaque = c == 3 && step < 4;
    for (std::int64_t row = 0; row < picture.size.height; ++row) {
      std::uint8_t* const to =
          out + c * plane + static_cast<std::size_t>((y + row) * size.width + x);
      const auto width = static_cast<std::size_t>(picture.size.width);
      if (is_opaque || !has_channel) {
        std::memset(to, 255, width);
        continue;
      }
      const std::uint8_t* const from =
          picture.pixels.data() + static_cast<std::size_t>(row) * picture.row_bytes() + source;
      for (std::size_t i = 0; i < width; ++i)
        to[i] = from[i * step];
    }
  }
}

}  // namespace

Placement place(PictureSize picture, const PictureForm& form) {
  if (!form.size)
    return {picture, 0, 0, picture, 0, 0};
  const PictureSize size = *form.size;
  switch (form.fit) {
    case PictureForm::Fit::kStretch:
      return {size, 0, 0, size, 0, 0};
    case PictureForm::Fit::kCrop: {
      PictureSize scaled = size;
      if (size.width * picture.height >= size.height * picture.width) {
        scaled.height = size.width * picture.height / picture.width;
      } else {
        scaled.width = size.height * picture.width / picture.height;
      }
      return {
          scaled, half_of(scaled.width - size.width), half_of(scaled.height - size.height), size, 0,
          0};
    }
    case PictureForm::Fit::kPad:
      break;
  }
  PictureSize scaled = size;
  if (picture.width * size.height > size.width * picture.height) {
    scaled.height = std::min(rounded(picture.height, picture.width, size.width), size.height);
  } else {
    scaled.width = std::min(rounded(picture.width, picture.height, size.height), size.width);
  }
  return {scaled,
          0,
          0,
          scaled,
          half_of(size.width - scaled.width),
          half_of(size.height - scaled.height)};
}

PictureHeader checked_header(std::span<const std::uint8_t> file, std::int64_t max_pixels) {
  const PictureHeader header = decoder_for(file).header(file);
  expect_decodable(header.size, max_pixels);
  return header;
}

void PictureMaker::make_image(std::span<const std::uint8_t> file, const PictureForm& form,
                              PictureSize expected, std::uint8_t* out) {
  const PictureHeader header = checked_header(file, form.max_pixels);
  if (!form.size)
    expect_size(header.upright_size(), expected);
  decoder_for(file).decode(file, Wanted::kColors, decoded_);
  convert(form.mode, decoded_);
  turn_upright(header.orientation, decoded_, spare_);
  const Placement placement = place(decoded_.size, form);
  if (placement.scaled == decoded_.size && placement.part == decoded_.size)
    return put_planes(decoded_, placement.x, placement.y, expected, form.channels(), out);
  premultiply(decoded_);
  resampler_.scale(decoded_, placement.scaled, placement.left, placement.top, placement.part,
                   scaled_);
  unpremultiply(scaled_);
  put_planes(scaled_, placement.x, placement.y, expected, form.channels(), out);
}

void PictureMaker::make_mask(std::span<const std::uint8_t> file, const PictureForm& form,
                             PictureSize picture, PictureSize expected, std::int16_t* out) {
  const PictureHeader header = checked_header(file, form.max_pixels);
  if (header.upright_size() != picture) {
    throw BadImage("has " + shown(header.upright_size()) + " pixels, but its image has " +
                   shown(picture));
  }
  decoder_for(file).decode(file, Wanted::kIndices, decoded_);
  turn_upright(header.orientation, decoded_, spare_);
  const Placement placement = place(picture, form);
  scale_nearest(decoded_, placement.scaled, placement.left, placement.top, placement.part, scaled_);
  std::fill_n(out, expected.width * expected.height, kNoPixel);
  for (std::int64_t row = 0; row < placement.part.height; ++row) {
    const std::uint8_t* const from =
        scaled_.pixels.data() + static_cast<std::size_t>(row) * scaled_.row_bytes();
    std::copy_n(from, placement.part.width,
                out + (placement.y + row) * expected.width + placement.x);
  }
}

}  // namespace treadle::images
