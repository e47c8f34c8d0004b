// Operations on images, against test/image_reference.py.
#include <array>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/testing/support/batches.h>
#include <treadle/testing/support/source_path.h>

#include "affine_map.h"
#include "color.h"
#include "resizing.h"
#include "sampling.h"

namespace treadle::testing {
namespace {

using namespace augmentation;

class ImageReference : public ::testing::Test {
 protected:
  static const nlohmann::json& reference() {
    static const nlohmann::json all = nlohmann::json::parse(
        std::ifstream(testing::source_path(TREADLE_PLUGIN_FOLDER) / "test/image_reference.json"));
    return all;
  }

  static at::Tensor tensor_of(const nlohmann::json& values, std::int64_t height,
                              std::int64_t width) {
    return at::tensor(values.get<std::vector<double>>(), at::kDouble).view({1, 3, height, width});
  }
  static at::Tensor expected(const nlohmann::json& values) { return tensor_of(values, 6, 8); }
  static at::Tensor image() { return expected(reference().at("image")); }
  static color::Levels levels() { return {image(), /*of_bytes=*/true}; }
  static at::Tensor factor(const std::string& number) {
    return at::full({1, 1, 1, 1}, std::stod(number), at::kDouble);
  }

  static void expect_close(const at::Tensor& got, const at::Tensor& expected, double tolerance) {
    EXPECT_LE(got.to(at::kDouble).sub(expected).abs().max().item<double>(), tolerance);
  }

  /// Of an operation with a factor.
  static void expect_factors(const char* name,
                             at::Tensor (*change)(const color::Levels&, const at::Tensor&),
                             double tolerance = 1e-3) {
    for (const auto& [number, values] : reference().at(name).items()) {
      SCOPED_TRACE(name + (" " + number));
      expect_close(change(levels(), factor(number)), expected(values), tolerance);
    }
  }
};

TEST_F(ImageReference, HasTheBrightnessContrastSaturationAndSharpnessOfTheDefinition) {
  expect_factors("brightness", &color::brightness);
  expect_factors("contrast", &color::contrast);
  expect_factors("saturation", &color::saturation);
  expect_factors("sharpness", &color::sharpness);
}

// Levels of bytes are multiplied by 255.999 / 255 before they are cut off.
TEST_F(ImageReference, HasTheHuesOfColorsys) {
  for (const auto& [turn, values] : reference().at("hue").items())
    expect_close(color::hue({image(), false}, factor(turn)), expected(values), 1e-3);
  expect_close(color::hue(levels(), factor("0")).floor(), image(), 0);
}

TEST_F(ImageReference, PosterizesSolarizesAndStretchesAsDefined) {
  for (const auto& [bits, values] : reference().at("posterize").items())
    expect_close(color::posterize(levels(), std::stoi(bits)), expected(values), 0);
  for (const auto& [threshold, values] : reference().at("solarize").items())
    expect_close(color::solarize(levels(), std::stod(threshold)), expected(values), 0);
  expect_close(color::autocontrast(levels()), expected(reference().at("autocontrast")), 1e-3);
}

TEST_F(ImageReference, EqualizesAsPil) {
  const at::Tensor coarse = image().div(16).floor().mul(16).repeat({1, 1, 1, 64});

  const at::Tensor equal = color::equalize({coarse, true});

  expect_close(equal.narrow(3, 0, 8), expected(reference().at("equalize").at("values")), 0);
  expect_close(color::equalize(levels()), image(), 0);  // as few pixels as levels: as they are
}

TEST_F(ImageReference, AConstantImageKeepsItsLevels) {
  const color::Levels flat{at::full({2, 3, 5, 4}, 93, at::kFloat), true};
  for (const at::Tensor& same : {color::autocontrast(flat), color::equalize(flat),
                                 color::sharpness(flat, factor("0.2").to(at::kFloat)),
                                 color::hue(flat, factor("0.3").to(at::kFloat)).floor()})
    EXPECT_TRUE(at::equal(same, flat.images));
}

TEST_F(ImageReference, AffineMapsLookUpWhatTheInverseMatrixSays) {
  for (const nlohmann::json& one : reference().at("affine")) {
    SCOPED_TRACE(one.at("angle").dump() + (one.at("bilinear") ? " bilinear" : " nearest"));
    const std::vector<AffineMap> maps{affine_map(
        {one.at("angle"), one.at("translate"), one.at("scale"), one.at("shear"), one.at("about")})};
    Sampling sampling{one.at("bilinear"), one.at("fill")};
    for (const at::ScalarType dtype : {at::kDouble, at::kFloat, at::kByte}) {
      const at::Tensor source = image().to(dtype);
      sampling.tensors_only = false;
      const at::Tensor by_loop = sampled(source, maps, sampling);
      sampling.tensors_only = true;
      const at::Tensor by_tensors = sampled(source, maps, sampling);

      expect_close(by_loop, expected(one.at("values")), dtype == at::kByte ? 0.51 : 1e-3);
      EXPECT_TRUE(same(by_tensors, by_loop));
    }
  }
}

TEST_F(ImageReference, ResizesByTheTriangleFilter) {
  for (const nlohmann::json& one : reference().at("resize")) {
    const auto edges = one.at("box").get<std::array<std::int64_t, 4>>();
    const std::vector<Box> boxes{{edges[0], edges[1], edges[2], edges[3]}};
    const std::int64_t height = one.at("height");
    const std::int64_t width = one.at("width");
    const at::Tensor expected = tensor_of(one.at("values"), height, width);
    for (const at::ScalarType dtype : {at::kDouble, at::kFloat, at::kByte}) {
      expect_close(resized(image().to(dtype), boxes, height, width), expected,
                   dtype == at::kByte ? 0.51 : 1e-3);
    }
  }
  const std::vector<Box> all{{0, 6, 0, 8}};
  EXPECT_TRUE(at::equal(resized(image(), all, 6, 8), image()));
  EXPECT_TRUE(at::equal(resized_masks(image(), all, 6, 8), image()));
  EXPECT_TRUE(
      at::equal(resized_masks(image(), all, 3, 4), image().slice(2, 0, 6, 2).slice(3, 0, 8, 2)));
}

}  // namespace
}  // namespace treadle::testing
