// MixUp, CutMix and the augmentation of images: the distributions of draws, and targets.
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/core/data/matrix_rows.h>
#include <treadle/engine/batch_pipeline.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/batches.h>

#include "color.h"

namespace treadle::testing {
namespace {

using Parameters = nlohmann::json;

class ImageAugmentation : public ::testing::Test {
 protected:
  static constexpr ApplyContext kTrained{.training = true, .seed = 7};

  static const PluginUnderTest& augmentations() {
    static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
    return plugin;
  }

  /// Images [rows, channels, height, width], with the class `row` for each.
  static MatrixRows rows_of(const at::Tensor& images) {
    MatrixRows::Matrices matrices;
    const std::int64_t rows = images.size(0);
    matrices.spec.inputs = {
        {"image", images.sizes().slice(1).vec(), {}, Role::kImage, images.scalar_type()}};
    matrices.spec.targets = {class_target("kind", std::vector<std::string>(100, "class"))};
    matrices.inputs = {images.contiguous()};
    matrices.targets = {at::arange(rows).remainder(100)};
    return MatrixRows(std::move(matrices));
  }
  static MatrixRows constant_images(std::int64_t rows, std::int64_t size, double value,
                                    at::ScalarType dtype = at::kByte) {
    return rows_of(at::full({rows, 3, size, size}, value, dtype));
  }
  /// Images in which every pixel of row r is r.
  static MatrixRows numbered_images(std::int64_t rows, std::int64_t size) {
    return rows_of(at::arange(rows, at::kFloat).view({rows, 1, 1, 1}).repeat({1, 1, size, size}));
  }

  static std::unique_ptr<Transform> fitted_to(const RowReader& rows, const char* component,
                                              const Parameters& parameters = Parameters::object()) {
    auto transform = augmentations().make<Transform>(component, parameters);
    transform->fit(rows, row_numbers(0, rows.rows()));
    return transform;
  }
  static Batch changed(const RowReader& rows, const Transform& transform,
                       const ApplyContext& context = kTrained) {
    Batch batch = gathered(rows, 0, rows.rows());
    transform.apply(batch, context);
    return batch;
  }
  static Batch changed(const RowReader& rows, const char* component,
                       const Parameters& parameters = Parameters::object(),
                       const ApplyContext& context = kTrained) {
    return changed(rows, *fitted_to(rows, component, parameters), context);
  }
  static std::string message_for(const RowReader& rows, const char* component,
                                 const Parameters& parameters = Parameters::object()) {
    try {
      changed(rows, component, parameters);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  static double mean_of(const at::Tensor& values) {
    return values.to(at::kDouble).mean().item<double>();
  }
};

TEST_F(ImageAugmentation, MixupIsTheMixtureOfEachRowWithTheOneInFrontOfIt) {
  const MatrixRows rows = numbered_images(5, 3);
  for (const bool per_row : {false, true}) {
    const Batch batch = changed(rows, "mixup", {{"alpha", 1}, {"per_row", per_row}});

    const at::Tensor shares = batch.mixture.shares;
    EXPECT_TRUE(at::equal(batch.mixture.partners, at::arange(5).roll(1, 0)));
    EXPECT_TRUE(shares.ge(0).logical_and(shares.le(1)).all().item<bool>());
    EXPECT_EQ(shares.max().item<double>() > shares.min().item<double>(), per_row);
    const at::Tensor numbers = at::arange(5, at::kDouble);
    const at::Tensor mixed = shares * numbers + (1 - shares) * numbers.roll(1, 0);
    EXPECT_TRUE(batch.inputs[0].to(at::kDouble).mean(at::IntArrayRef{1, 2, 3}).allclose(mixed));
    EXPECT_TRUE(at::equal(batch.targets[0], batch.original_targets[0]));
  }
}

// Beta(a, a) has the mean 1/2 and the variance 1 / (4 (2a + 1)).
TEST_F(ImageAugmentation, SharesHaveTheBetaDistributionOfTheirAlpha) {
  constexpr std::int64_t kMany = 20000;
  const MatrixRows rows = rows_of(at::full({kMany, 1, 1, 1}, 1, at::kFloat));
  for (const double alpha : {0.2, 1.0, 5.0}) {
    const at::Tensor shares =
        changed(rows, "mixup", {{"alpha", alpha}, {"per_row", true}}).mixture.shares;

    EXPECT_NEAR(mean_of(shares), 0.5, 0.01) << alpha;
    EXPECT_NEAR(shares.var().item<double>(), 1 / (4 * (2 * alpha + 1)), 0.004) << alpha;
  }
  const at::Tensor some =
      changed(rows, "mixup", {{"per_row", true}, {"probability", 0.3}}).mixture.shares;
  EXPECT_NEAR(mean_of(some.ne(1)), 0.3, 0.015);
}

TEST_F(ImageAugmentation, CutmixPastesAPatchWhoseAreaIsNotTheRowsShare) {
  const MatrixRows rows = numbered_images(40, 8);

  const Batch batch = changed(rows, "cutmix", {{"per_row", true}});

  std::vector<double> patches;
  for (std::int64_t row = 0; row < 40; ++row) {
    const at::Tensor image = batch.inputs[0][row][0];
    const at::Tensor partner = image.eq((row + 39) % 40);
    EXPECT_TRUE(image.eq(row).logical_or(partner).all().item<bool>());
    EXPECT_NEAR(1 - mean_of(partner), batch.mixture.shares[row].item<double>(), 1e-12);
    // A box: as many pixels as lines times columns with one.
    EXPECT_EQ(partner.sum().item<std::int64_t>(),
              (partner.any(1).sum() * partner.any(0).sum()).item<std::int64_t>());
    patches.push_back(mean_of(partner));
  }
  EXPECT_GT(*std::max_element(patches.begin(), patches.end()), 0.5);
}

TEST_F(ImageAugmentation, ABatchIsMixedOnceAndOneRowIsNot) {
  const MatrixRows rows = numbered_images(6, 4);
  const auto mixup = fitted_to(rows, "mixup", {{"alpha", 5}});
  const auto cutmix = fitted_to(rows, "cutmix");
  Batch batch = changed(rows, *mixup);
  const at::Tensor mixed = batch.inputs[0].clone();

  cutmix->apply(batch, kTrained);

  EXPECT_TRUE(same(batch.inputs[0], mixed));
  Batch one = gathered(rows, 2, 3);
  mixup->apply(one, kTrained);
  EXPECT_TRUE(one.mixture.is_empty());
  EXPECT_TRUE(changed(rows, "mixup", {{"probability", 0}}).mixture.is_empty());
}

// Areas are uniform between 2 % and 33 %; 16 x 16 pixels hold nearly all boxes that are drawn.
TEST_F(ImageAugmentation, ErasesBoxesOfTheAskedForShareAndArea) {
  const MatrixRows rows = constant_images(4000, 16, 9);

  const at::Tensor erased = changed(rows, "random_erasing").inputs[0].eq(0).select(1, 0);

  const at::Tensor areas = erased.to(at::kDouble).mean(at::IntArrayRef{1, 2});
  EXPECT_NEAR(mean_of(areas.gt(0)), 0.5, 0.03);
  const at::Tensor of_boxes = areas.masked_select(areas.gt(0));
  EXPECT_NEAR(mean_of(of_boxes), 0.17, 0.01);
  EXPECT_GE(of_boxes.min().item<double>(), 0.01);
  EXPECT_LE(of_boxes.max().item<double>(), 0.36);
  const at::Tensor lines = erased.any(2).sum(1);
  const at::Tensor columns = erased.any(1).sum(1);
  EXPECT_TRUE(at::equal(lines * columns, erased.sum(at::IntArrayRef{1, 2})));
}

TEST_F(ImageAugmentation, JitterHasFactorsFromTheRangeInBothDirections) {
  const MatrixRows rows = constant_images(3000, 2, 100);

  const at::Tensor levels =
      changed(rows, "color_jitter", {{"brightness", 0.4}, {"contrast", 0}}).inputs[0];

  EXPECT_NEAR(mean_of(levels), 99.5, 1.5);  // levels are cut off
  EXPECT_NEAR(levels.min().item<double>(), 60, 1);
  EXPECT_NEAR(levels.max().item<double>(), 139, 1);
  EXPECT_TRUE(
      at::equal(levels.amax(at::IntArrayRef{1, 2, 3}), levels.amin(at::IntArrayRef{1, 2, 3})));
}

TEST_F(ImageAugmentation, NumbersFromZeroToOneAreColorsAsBytesAre) {
  const TaskRandom random(3);
  const at::Tensor bytes = at::randint(0, 256, {50, 3, 6, 6}, at::kByte);
  const MatrixRows of_bytes = rows_of(bytes);
  const MatrixRows of_shares = rows_of(bytes.to(at::kFloat).div(255));
  const Parameters all{{"contrast", 0}, {"saturation", 0.3}, {"brightness", 0}};

  const at::Tensor from_bytes = changed(of_bytes, "color_jitter", all).inputs[0];
  const at::Tensor from_shares = changed(of_shares, "color_jitter", all).inputs[0];

  EXPECT_TRUE(from_shares.mul(255).allclose(from_bytes.to(at::kFloat), 0, 1.5));
}

/// Each of the 14 operations of RandAugment, alone: which of them made a row.
TEST_F(ImageAugmentation, RandAugmentDrawsItsFourteenOperationsEquallyOften) {
  constexpr std::int64_t kMany = 7000;
  const TaskRandom random(4);
  const at::Tensor image = at::randint(30, 200, {1, 3, 16, 16}, at::kByte);
  const MatrixRows rows = rows_of(image.repeat({kMany, 1, 1, 1}));
  const color::Levels levels{image.to(at::kFloat), true};
  const auto factor = [](double by) { return at::full({1, 1, 1, 1}, by, at::kFloat); };
  // Magnitude 9 of 30: 0.9 * 9 / 30 = 0.27, and so on.
  std::map<std::string, std::vector<at::Tensor>> known{
      {"identity", {levels.images}},
      {"brightness",
       {color::brightness(levels, factor(1.27)), color::brightness(levels, factor(0.73))}},
      {"color", {color::saturation(levels, factor(1.27)), color::saturation(levels, factor(0.73))}},
      {"contrast", {color::contrast(levels, factor(1.27)), color::contrast(levels, factor(0.73))}},
      {"sharpness",
       {color::sharpness(levels, factor(1.27)), color::sharpness(levels, factor(0.73))}},
      {"posterize", {color::posterize(levels, 7)}},
      {"solarize", {color::solarize(levels, 255 * 0.7)}},
      {"autocontrast", {color::autocontrast(levels)}},
      {"translate_x", {}},
      {"translate_y", {}}};
  // 150 / 331 * 16 * 0.3 = 2.17 pixels.
  for (const std::int64_t by : {2, -2}) {
    at::Tensor right = levels.images.roll(by, 3);
    right.narrow(3, by > 0 ? 0 : 14, 2).zero_();
    known["translate_x"].push_back(right);
    at::Tensor down = levels.images.roll(by, 2);
    down.narrow(2, by > 0 ? 0 : 14, 2).zero_();
    known["translate_y"].push_back(down);
  }

  const at::Tensor results = changed(rows, "rand_augment", {{"num_ops", 1}}).inputs[0];

  std::int64_t explained = 0;
  for (const auto& [name, outcomes] : known) {
    std::int64_t count = 0;
    for (const at::Tensor& outcome : outcomes) {
      const std::int64_t one =
          results.eq(outcome.to(at::kByte)).flatten(1).all(1).sum().item<std::int64_t>();
      count += one;
      if (outcomes.size() == 2) {
        EXPECT_NEAR(one, kMany / 28.0, 80) << name;
      }
    }
    EXPECT_NEAR(count, kMany / 14.0, 110) << name;
    explained += count;
  }
  EXPECT_NEAR(explained, kMany * 10 / 14.0, 200) << "the others are sheared, rotated, equalized";
}

/// A mask that is the image: classes that are the levels of its pixels.
class MaskedImages : public ImageAugmentation {
 protected:
  static MatrixRows masked(std::int64_t rows, std::int64_t height, std::int64_t width) {
    const TaskRandom random(8);
    const at::Tensor classes = at::randint(1, 50, {rows, height, width}, at::kLong);
    MatrixRows::Matrices matrices;
    matrices.spec.inputs = {{"image", {1, height, width}, {}, Role::kImage, at::kFloat}};
    matrices.spec.targets = {
        class_target("mask", std::vector<std::string>(50, "class"), {height, width}),
        {"depth", TargetKind::kNumbers, {height, width, 1}}};
    matrices.inputs = {classes.to(at::kFloat).unsqueeze(1).contiguous()};
    matrices.targets = {classes, classes.to(at::kDouble).unsqueeze(-1).contiguous()};
    return MatrixRows(std::move(matrices));
  }

  /// Mask and image are the same where the weights are 1; elsewhere the image is the fill, 0.
  static void expect_aligned(const Batch& batch) {
    const at::Tensor image = batch.inputs[0].squeeze(1);
    const at::Tensor weights = batch.position_weights.empty() ? at::ones(image.sizes(), at::kFloat)
                                                              : batch.position_weights[0];
    EXPECT_TRUE(at::equal(batch.targets[0].to(at::kFloat).mul(weights), image));
    EXPECT_TRUE(at::equal(batch.targets[1].squeeze(-1).to(at::kFloat).mul(weights), image));
    EXPECT_TRUE(at::equal(weights.eq(0), image.eq(0)));
  }
};

TEST_F(MaskedImages, MasksMoveWithTheirImages) {
  const MatrixRows rows = masked(30, 7, 9);
  const std::pair<const char*, Parameters> moving[] = {
      {"random_flip", {{"vertical", 0.5}}},
      {"random_crop", {{"padding", 2}}},
      {"random_crop", {{"size", {4, 5}}}},
      {"random_crop", {{"size", 6}, {"padding", 1}}},
      {"random_affine", {{"degrees", 40}, {"translate", {0.2, 0.2}}, {"shear", 10}}},
      {"cutmix", {{"per_row", true}}}};
  for (const auto& [name, parameters] : moving) {
    SCOPED_TRACE(name + parameters.dump());
    const auto transform = fitted_to(rows, name, parameters);
    EXPECT_FALSE(transform->works_on_device());

    const Batch batch = changed(rows, *transform);

    EXPECT_FALSE(at::equal(batch.inputs[0].narrow(2, 0, 4).narrow(3, 0, 5),
                           rows.matrices().inputs[0].narrow(2, 0, 4).narrow(3, 0, 5)));
    expect_aligned(batch);
    const DataSpec after = transform->output_spec(rows.spec());
    EXPECT_EQ(after.targets[0].shape[0], batch.targets[0].size(1));
    EXPECT_EQ(after.targets[1].shape[1], batch.targets[1].size(2));
  }
}

TEST_F(MaskedImages, AugmentedMasksHaveThePlacesOfTheirPixels) {
  const MatrixRows rows = masked(60, 8, 8);
  const Batch batch = changed(rows, "rand_augment", {{"num_ops", 1}, {"magnitude", 20}});
  const at::Tensor& weights = batch.position_weights[0];
  const at::Tensor image = batch.inputs[0].squeeze(1);
  std::int64_t moved = 0;
  for (std::int64_t row = 0; row < 60; ++row) {
    const bool has_moved = !at::equal(batch.targets[0][row], rows.matrices().targets[0][row]);
    moved += static_cast<std::int64_t>(has_moved);
    // Colors change images and leave masks alone; moves change no colors.
    if (has_moved) {
      EXPECT_TRUE(at::equal(batch.targets[0][row].to(at::kFloat).mul(weights[row]), image[row]));
    } else {
      EXPECT_TRUE(weights[row].eq(1).all().item<bool>());
    }
  }
  EXPECT_NEAR(moved, 60 * 5 / 14.0, 12);
}

TEST_F(MaskedImages, EvaluationComparesWithMasksOfTheSizeOfItsImages) {
  const MatrixRows rows = masked(3, 8, 8);
  const ApplyContext evaluation{.training = false};

  const Batch cut = changed(rows, "random_crop", {{"size", 4}}, evaluation);
  const Batch half = changed(rows, "random_resized_crop", {{"size", 4}}, evaluation);

  expect_aligned(cut);
  EXPECT_TRUE(cut.original_targets[0].is_same(cut.targets[0]));
  const at::Tensor& masks = rows.matrices().targets[0];
  EXPECT_TRUE(at::equal(half.targets[0], masks.slice(1, 0, 8, 2).slice(2, 0, 8, 2)));
  EXPECT_EQ(half.original_targets[1].size(1), 4);
}

TEST_F(MaskedImages, AreNotMovedBehindMixup) {
  const MatrixRows rows = masked(4, 6, 6);
  Batch batch = changed(rows, "mixup");
  const auto flip = fitted_to(rows, "random_flip");

  EXPECT_THROW(flip->apply(batch, kTrained), DataError);
}

TEST_F(ImageAugmentation, ResizedCropsAreBoxesOfTheAskedForAreaAndRatio) {
  // Two channels that are the coordinates: their range in a crop is that of its box.
  const at::Tensor line = at::arange(64, at::kFloat);
  const at::Tensor image = at::stack({line.view({64, 1}).expand({64, 64}), line.expand({64, 64})});
  const MatrixRows rows = rows_of(image.unsqueeze(0).repeat({2000, 1, 1, 1}));

  const at::Tensor crops =
      changed(rows, "random_resized_crop", {{"size", 64}, {"scale", {0.1, 0.5}}}).inputs[0];

  // Between the centers of the outermost pixels that are sampled there are n - 1 of n pixels.
  const at::Tensor extents =
      (crops.amax(at::IntArrayRef{2, 3}) - crops.amin(at::IntArrayRef{2, 3})).add(1);
  const at::Tensor areas = extents.prod(1).div(64 * 64);
  const at::Tensor ratios = extents.select(1, 1).div(extents.select(1, 0)).log();
  EXPECT_NEAR(mean_of(areas), 0.3, 0.01);
  EXPECT_GT(areas.min().item<double>(), 0.09);
  EXPECT_LT(areas.max().item<double>(), 0.52);
  EXPECT_NEAR(mean_of(ratios), 0, 0.01);
  EXPECT_LT(ratios.abs().max().item<double>(), std::log(4.0 / 3) + 0.06);
}

TEST_F(ImageAugmentation, AnyNumberOfWorkersPreparesTheSameImagesAndMixtures) {
  const TaskRandom random(2);
  const MatrixRows rows = rows_of(at::randint(0, 256, {96, 3, 8, 8}, at::kByte));
  std::vector<std::unique_ptr<Transform>> chain;
  for (const char* const name : {"random_resized_crop", "random_affine", "rand_augment",
                                 "trivial_augment", "color_jitter", "random_erasing"})
    chain.push_back(fitted_to(rows, name));
  chain.push_back(fitted_to(rows, "mixup", {{"probability", 0.5}}));
  chain.push_back(fitted_to(rows, "cutmix"));
  std::vector<const Transform*> transforms;
  for (const auto& transform : chain)
    transforms.push_back(transform.get());
  engine::PipelineOptions options;
  options.shuffle = options.training = true;
  at::Tensor expected;

  for (const int workers : {1, 3}) {
    engine::ThreadBudget budget(workers);
    budget.run([&] {
      engine::BatchPipeline pipeline(rows, row_numbers(0, 96), {rows.spec(), transforms}, options,
                                     RandomStreams(5));
      std::vector<at::Tensor> parts;
      for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
        const auto stream = pipeline.epoch(epoch);
        for (Batch batch; stream->next(batch);) {
          ASSERT_FALSE(batch.mixture.is_empty());
          EXPECT_TRUE(at::equal(batch.mixture.targets[0], batch.targets[0].roll(1, 0)));
          parts.push_back(at::cat({batch.inputs[0].flatten(), batch.mixture.shares}));
        }
      }
      const at::Tensor got = at::cat(parts);
      if (!expected.defined())
        expected = got;
      EXPECT_TRUE(same(got, expected)) << workers << " workers";
    });
  }
}

TEST_F(ImageAugmentation, MistakesAreFoundWhenItIsFitted) {
  const MatrixRows standardized = rows_of(at::full({2, 3, 4, 4}, -0.5, at::kFloat));
  EXPECT_EQ(message_for(standardized, "rand_augment"),
            "rand_augment: colors are numbers from 0 to 1 or from 0 to 255, and images here have "
            "values from -0.5 to 0.0; put rand_augment in front of transforms that scale them, or "
            "set \"max_value\"");
  const MatrixRows gray = rows_of(at::full({2, 1, 4, 4}, 5, at::kByte));
  EXPECT_EQ(message_for(gray, "color_jitter", {{"hue", 0.1}}),
            "color_jitter: input \"image\" has 1 channels; \"saturation\" and \"hue\" need red, "
            "green and blue: leave them out, or name other inputs");
  EXPECT_EQ(message_for(gray, "random_erasing", {{"value", {1, 2, 3}}}),
            "random_erasing: \"value\" has 3 numbers, and input \"image\" has 1 channels; give one "
            "number, or one for each channel");
  EXPECT_EQ(message_for(gray, "mixup", {{"inputs", {"imag"}}}),
            "mixup: unknown input \"imag\"; the inputs are image; did you mean \"image\"?");
  EXPECT_NE(message_for(gray, "rand_augment", {{"magnitude", 31}}).find("num_magnitude_bins"),
            std::string::npos);
  EXPECT_NE(message_for(gray, "random_affine", {{"scale", {2, 1}}}).find("lower and the upper end"),
            std::string::npos);
}

}  // namespace
}  // namespace treadle::testing
