// Compares the images in data/ with the checksums of Pillow's results in expected.txt;
// make_images.py writes both.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/testing/support/source_path.h>

#include "decoder.h"
#include "image_files.h"
#include "picture_form.h"

namespace treadle::images {
namespace {

std::filesystem::path made(const std::string& name) {
  return testing::source_path(TREADLE_TEST_DATA) / name;
}

std::vector<std::uint8_t> content_of(const std::filesystem::path& file) {
  std::vector<std::uint8_t> bytes;
  read_file(file, 1 << 30, bytes);
  return bytes;
}

/// As zlib and PNG have it.
std::uint32_t crc32_of(std::span<const std::uint8_t> bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit)
      crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xEDB88320 : 0);
  }
  return ~crc;
}

struct Case {
  std::string file;
  std::string mode;
  std::string fit;
  PictureSize size;  // none: 0
  PictureSize result;
  std::uint32_t crc = 0;

  std::string text() const {
    return file + " " + mode + " " + fit + " " + std::to_string(size.height) + "x" +
           std::to_string(size.width);
  }
};

std::vector<Case> cases(const std::filesystem::path& folder) {
  std::ifstream file(folder / "expected.txt");
  std::vector<Case> cases;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Case one;
    words >> one.file >> one.mode >> one.fit >> one.size.height >> one.size.width >>
        one.result.height >> one.result.width >> std::hex >> one.crc;
    cases.push_back(one);
  }
  return cases;
}

PictureForm form_of(const Case& one) {
  using Mode = PictureForm::Mode;
  using Fit = PictureForm::Fit;
  static const std::map<std::string, Mode> modes{
      {"rgb", Mode::kRgb}, {"gray", Mode::kGray}, {"rgba", Mode::kRgba}, {"mask", Mode::kGray}};
  static const std::map<std::string, Fit> fits{
      {"crop", Fit::kCrop}, {"stretch", Fit::kStretch}, {"pad", Fit::kPad}};
  PictureForm form;
  form.mode = modes.at(one.mode);
  form.fit = fits.at(one.fit);
  if (one.size.height > 0)
    form.size = one.size;
  return form;
}

std::string problem_with(const std::string& name, Wanted wanted = Wanted::kColors) {
  const std::vector<std::uint8_t> bytes = content_of(made(name));
  try {
    checked_header(bytes, PictureForm().max_pixels);
    Picture picture;
    decoder_for(bytes).decode(bytes, wanted, picture);
  } catch (const BadImage& problem) {
    return problem.what();
  }
  return "no problem";
}

void expect_equal(const std::vector<Case>& all, const std::filesystem::path& folder) {
  PictureMaker maker;
  for (const Case& one : all) {
    SCOPED_TRACE(one.text());
    const PictureForm form = form_of(one);
    const std::vector<std::uint8_t> bytes = content_of(folder / one.file);
    std::vector<std::uint8_t> planes(
        static_cast<std::size_t>(one.result.width * one.result.height * form.channels()));
    if (one.mode == "mask") {
      std::vector<std::int16_t> values(planes.size());
      const PictureSize own = checked_header(bytes, form.max_pixels).upright_size();
      maker.make_mask(bytes, form, own, one.result, values.data());
      planes.assign(values.begin(), values.end());
    } else {
      maker.make_image(bytes, form, one.result, planes.data());
    }

    EXPECT_EQ(crc32_of(planes), one.crc);
  }
}

TEST(Pictures, AreToTheBitWhatPillowMakesOfThem) {
  const std::vector<Case> all = cases(made(""));
  ASSERT_EQ(all.size(), 125U);
  expect_equal(all, made(""));
}

// tests/judges/images makes the folder.
TEST(Pictures, OfAJudgeAreToTheBitWhatItsProgramsMakeOfThem) {
  const char* const folder = std::getenv("TREADLE_JUDGED_IMAGES");
  if (folder == nullptr)
    GTEST_SKIP() << "for scripts/judge images";
  const std::vector<Case> all = cases(folder);
  ASSERT_FALSE(all.empty());
  expect_equal(all, folder);
}

TEST(Pictures, ThatAreBrokenSayWhatIsWrong) {
  EXPECT_EQ(problem_with("truncated.png"), "cannot be decoded as PNG: the file is truncated");
  EXPECT_EQ(problem_with("damaged.png").substr(0, 26), "cannot be decoded as PNG: ");
  EXPECT_EQ(problem_with("truncated.jpg"), "cannot be decoded as JPEG: Premature end of JPEG file");
  EXPECT_EQ(problem_with("truncated.webp"), "cannot be decoded as WebP: the file is truncated");
  EXPECT_EQ(problem_with("empty.png"), "is empty");
  EXPECT_EQ(problem_with("text.png"), "is no JPEG, PNG or WebP");
  EXPECT_EQ(problem_with("bomb.png"),
            "has 60000x60000 pixels, more than \"max_pixels\" allows, 178956970");
  EXPECT_EQ(problem_with("animated.webp"), "is an animated WebP; take one picture of it");
  EXPECT_EQ(problem_with("rgb.png", Wanted::kIndices),
            "has colors; a mask has a palette or gray values, which are class numbers");
  EXPECT_EQ(problem_with("gray.jpg", Wanted::kIndices),
            "is a JPEG, whose values are not exact; a mask is a PNG");
}

// Each beginning of a file is an error or, where only the end of a file is missing, the picture.
TEST(Pictures, ThatAreCutAnywhereEndInAnError) {
  for (const char* const name : {"palette.png", "turned6.jpg", "lossless.webp"}) {
    const std::vector<std::uint8_t> bytes = content_of(made(name));
    Picture picture;
    for (std::size_t size = 0; size + 16 < bytes.size(); size += 7) {
      SCOPED_TRACE(std::string(name) + " " + std::to_string(size));
      // On the heap, so that a read behind the end is seen.
      const std::vector<std::uint8_t> cut(bytes.begin(),
                                          bytes.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_THROW(
          {
            checked_header(cut, 1 << 20);
            decoder_for(cut).decode(cut, Wanted::kColors, picture);
          },
          BadImage);
    }
  }
}

// Triangles around (i + 0.5) in / out, by hand: 4 pixels to 2 have weights 1/8 3/8 3/8 1/8 inside,
// and at the border 3/7 3/7 1/7.
TEST(Resampler, WeighsNeighboursByTriangles) {
  Picture row{{4, 1}, 1, {10, 20, 40, 80}};
  Picture half;
  Resampler().scale(row, {2, 1}, 0, 0, {2, 1}, half);

  EXPECT_EQ(half.pixels, (std::vector<std::uint8_t>{19, 54}));  // (30+60+40)/7, (20+120+240)/7
}

TEST(Placement, CropsTheMiddleOfWhatCoversTheSize) {
  PictureForm form;
  form.size = PictureSize{32, 32};

  const Placement wide = place({200, 100}, form);

  EXPECT_EQ(wide.scaled, (PictureSize{64, 32}));
  EXPECT_EQ(wide.left, 16);
  EXPECT_EQ(wide.top, 0);
}

TEST(Placement, KeepsAtLeastAPixelOfAnyPicture) {
  for (const PictureForm::Fit fit :
       {PictureForm::Fit::kCrop, PictureForm::Fit::kStretch, PictureForm::Fit::kPad}) {
    PictureForm form;
    form.size = PictureSize{8, 5};
    form.fit = fit;
    const Placement placed = place({1, 100000}, form);

    Picture picture;
    picture.become({1, 100000}, 1);
    Picture out;
    Resampler().scale(picture, placed.scaled, placed.left, placed.top, placed.part, out);

    EXPECT_GE(out.pixels.size(), 1U);
  }
}

}  // namespace
}  // namespace treadle::images
