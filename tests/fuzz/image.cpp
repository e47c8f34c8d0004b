#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "picture_form.h"
#include "targets.h"

namespace treadle::fuzz {
namespace {

using images::BadImage;
using images::PictureForm;
using images::PictureMaker;
using images::PictureSize;

constexpr std::int64_t kMostPixels = 1 << 16;

/// The planes, or nothing where the file is refused. `stain` is in the memory before.
std::optional<std::vector<std::uint8_t>> planes_of(std::span<const std::uint8_t> file,
                                                   const PictureForm& form, std::uint8_t stain) {
  PictureMaker maker;
  try {
    const PictureSize own = images::checked_header(file, form.max_pixels).upright_size();
    promise(own.width > 0 && own.height > 0 && own.width * own.height <= kMostPixels,
            "a header that is accepted has no more pixels than allowed");
    const PictureSize size = form.size.value_or(own);
    std::vector<std::uint8_t> planes(
        static_cast<std::size_t>(size.width * size.height * form.channels()), stain);
    maker.make_image(file, form, size, planes.data());
    return planes;
  } catch (const BadImage& problem) {
    promise_readable(problem.what(), 1000);
    return std::nullopt;
  }
}

void judge_mask(std::span<const std::uint8_t> file, const PictureForm& form) {
  try {
    const PictureSize own = images::checked_header(file, form.max_pixels).upright_size();
    const PictureSize size = form.size.value_or(own);
    std::vector<std::int16_t> values(static_cast<std::size_t>(size.width * size.height), 999);
    PictureMaker().make_mask(file, form, own, size, values.data());
    promise(std::all_of(values.begin(), values.end(),
                        [](std::int16_t value) { return value >= -1 && value < 256; }),
            "the values of a mask are bytes, or none");
  } catch (const BadImage& problem) {
    promise_readable(problem.what(), 1000);
  }
}

}  // namespace

void image(std::string_view bytes) {
  const std::vector<std::uint8_t> file(bytes.begin(), bytes.end());  // a read behind it is seen
  PictureForm whole;
  whole.max_pixels = kMostPixels;
  PictureForm cropped = whole;
  cropped.mode = PictureForm::Mode::kRgba;
  cropped.size = PictureSize{7, 5};
  PictureForm padded = whole;
  padded.mode = PictureForm::Mode::kGray;
  padded.size = PictureSize{9, 40};
  padded.fit = PictureForm::Fit::kPad;
  for (const PictureForm& form : {whole, cropped, padded}) {
    promise(planes_of(file, form, 0xAA) == planes_of(file, form, 0x55),
            "an image is a function of its bytes");
    judge_mask(file, form);
  }
}

}  // namespace treadle::fuzz
