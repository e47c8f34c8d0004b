#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/problem.h>
#include <treadle/core/data/batch.h>
#include <treadle/core/data/matrix_rows.h>
#include <treadle/core/data/row_reader.h>
#include <treadle/engine/batch_pipeline.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/testing/data/transform_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/batches.h>

#include "noise.h"
#include "normal_draws.h"
#include "random_crop.h"
#include "random_flip.h"

namespace treadle::testing {
namespace {

using ::testing::ElementsAre;
using Json = nlohmann::json;
using Values = std::vector<double>;

const PluginUnderTest& plugin() {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin;
}

TransformCase augmentation_case(std::string name, const char* component,
                                const Json& parameters = Json::object()) {
  TransformCase one;
  one.name = std::move(name);
  one.make = [=] { return plugin().make<Transform>(component, parameters); };
  one.augments = one.images = true;
  one.draws_on_device = std::string(component) == "noise";
  return one;
}

/// Of a transform that computes with levels of pixels, which are rounded where they are bytes.
TransformCase pixel_case(std::string name, const char* component, Json parameters,
                         double bytes_within = 1) {
  TransformCase one = augmentation_case(std::move(name), component, parameters);
  one.bytes_within = bytes_within;
  return one;
}

INSTANTIATE_TEST_SUITE_P(
    Augmentations, TransformContract,
    ::testing::Values(
        augmentation_case("Noise", "noise"),
        augmentation_case("NoiseOnSome", "noise", {{"columns", {"b"}}, {"std", 2}}),
        augmentation_case("NoiseByName", "noise", {{"std", {{"a", 1}, {"picture", 0.5}}}}),
        augmentation_case("CropInPlace", "random_crop", {{"padding", 2}, {"fill", 1}}),
        augmentation_case("SmallerCrop", "random_crop", {{"size", {4, 3}}}),
        augmentation_case("FilledWithAFraction", "random_crop",
                          {{"size", 4}, {"padding", 1}, {"fill", 0.5}}),
        augmentation_case("Flip", "random_flip", {{"vertical", 0.5}}),
        augmentation_case("Mixup", "mixup", {{"inputs", {"picture"}}}),
        augmentation_case("MixupOfEachRow", "mixup",
                          {{"inputs", {"picture"}}, {"per_row", true}, {"probability", 0.5}}),
        augmentation_case("Cutmix", "cutmix"),
        augmentation_case("Erasing", "random_erasing", {{"value", {1, 2}}}),
        augmentation_case("NearestAffine", "random_affine",
                          {{"translate", {0.2, 0.1}}, {"scale", {0.5, 2}}, {"shear", 20}}),
        pixel_case("BilinearAffine", "random_affine",
                   {{"degrees", {-90, 180}}, {"interpolation", "bilinear"}, {"fill", 3}}, 0.5001),
        pixel_case("ResizedCrop", "random_resized_crop", {{"size", {4, 8}}}, 0.5001),
        pixel_case("ColorJitter", "color_jitter", {{"max_value", 255}}, 4),
        pixel_case("RandAugment", "rand_augment",
                   {{"max_value", 255}, {"interpolation", "bilinear"}, {"num_ops", 1}}, 2),
        pixel_case("TrivialAugment", "trivial_augment", {{"max_value", 255}, {"fill", 100}}, 2)),
    CaseName());

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr ApplyContext kTraining{.training = true, .seed = 7};

class AugmentationTest : public ::testing::Test {
 protected:
  /// Rows of one image each, [height, width] or [channels, height, width].
  static MatrixRows images(std::int64_t rows, std::vector<std::int64_t> shape,
                           at::ScalarType dtype = at::kDouble) {
    MatrixRows::Matrices matrices;
    matrices.spec.inputs = {{"image", shape, {}, Role::kFeatures, dtype}};
    std::int64_t pixels = 1;
    for (const std::int64_t extent : shape)
      pixels *= extent;
    shape.insert(shape.begin(), rows);
    const at::Tensor one = at::arange(1, pixels + 1, at::TensorOptions(dtype));
    matrices.inputs = {one.unsqueeze(0).repeat({rows, 1}).view(shape).contiguous()};
    return MatrixRows(std::move(matrices));
  }

  /// The columns "a", "b" and "c", an image and the category "color", all 0 but for a missing
  /// value.
  static MatrixRows table(std::int64_t rows, at::ScalarType dtype = at::kDouble) {
    MatrixRows::Matrices matrices;
    matrices.spec.inputs = {
        {"features", {3}, {{"a", {}}, {"b", {}}, {"c", {}, true}}, Role::kFeatures, dtype},
        {"image", {2, 3}, {}, Role::kImage, dtype},
        {"categories", {1}, {{"color", {"blue"}}}, Role::kCategories, at::kLong}};
    matrices.inputs = {at::zeros({rows, 3}, dtype), at::zeros({rows, 2, 3}, dtype),
                       at::zeros({rows, 1}, at::kLong)};
    matrices.inputs[0][0][2].fill_(kNan);
    return MatrixRows(std::move(matrices));
  }

  template <typename Augmentation>
  static std::unique_ptr<Transform> fitted(const char* component, const Json& parameters,
                                           const RowReader& reader, std::string place = "") {
    auto transform = std::make_unique<Augmentation>(
        Config(plugin().completed(component, parameters), std::move(place)));
    transform->fit(reader, row_numbers(0, 1));
    return transform;
  }
  static std::unique_ptr<Transform> noise(const Json& parameters, const RowReader& reader,
                                          std::string place = "") {
    return fitted<augmentation::Noise>("noise", parameters, reader, std::move(place));
  }
  static std::unique_ptr<Transform> crop(const Json& parameters, const RowReader& reader) {
    return fitted<augmentation::RandomCrop>("random_crop", parameters, reader);
  }
  static std::unique_ptr<Transform> flip(const Json& parameters, const RowReader& reader,
                                         std::string place = "") {
    return fitted<augmentation::RandomFlip>("random_flip", parameters, reader, std::move(place));
  }

  static Batch applied(const Transform& transform, const RowReader& reader,
                       const ApplyContext& context = kTraining) {
    Batch batch = gathered(reader, 0, reader.rows());
    transform.apply(batch, context);
    return batch;
  }

  static Values values(const at::Tensor& tensor) {
    const at::Tensor flat = tensor.to(at::kDouble).contiguous();
    return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
  }

  /// The different images in a batch, and how often each is there.
  static std::map<Values, int> counted(const at::Tensor& images) {
    std::map<Values, int> counts;
    for (std::int64_t row = 0; row < images.size(0); ++row)
      ++counts[values(images[row])];
    return counts;
  }

  template <typename Action>
  static std::string message_of(Action&& action) {
    try {
      action();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
};

/// Five standard deviations of a mean, or of a share.
double five_of_mean(double deviation, std::int64_t count) {
  return 5 * deviation / std::sqrt(static_cast<double>(count));
}

// The share further than x from 0 is erfc(x / sqrt(2)). At 3.4426 begins the tail, which has a
// method of its own.
TEST_F(AugmentationTest, NormalDrawsHaveTheSharesOfTheNormalDistribution) {
  constexpr int kDraws = 4000000;
  constexpr std::array kPlaces = {0.1, 0.5, 1.0, 1.7, 2.5, 3.4, 3.4426, 3.7, 4.2};
  std::array<int, kPlaces.size()> further{};
  int negative = 0;
  int negative_in_tail = 0;
  augmentation::NormalDraws normal(RandomBits(11));

  for (int i = 0; i < kDraws; ++i) {
    const double value = normal.next();
    for (std::size_t p = 0; p < kPlaces.size() && std::abs(value) > kPlaces[p]; ++p)
      ++further[p];
    negative += value < 0 ? 1 : 0;
    negative_in_tail += value < -3.4426 ? 1 : 0;
  }

  const auto expect_share = [&](int count, double share, const std::string& what) {
    EXPECT_NEAR(count / double{kDraws}, share, five_of_mean(std::sqrt(share * (1 - share)), kDraws))
        << what;
  };
  for (std::size_t p = 0; p < kPlaces.size(); ++p) {
    expect_share(further[p], std::erfc(kPlaces[p] / std::sqrt(2)),
                 "further than " + std::to_string(kPlaces[p]));
  }
  expect_share(negative, 0.5, "negative");
  expect_share(negative_in_tail, std::erfc(3.4426 / std::sqrt(2)) / 2, "the tail on the left");
}

TEST_F(AugmentationTest, NoiseIsNormalWithTheDeviationAskedFor) {
  constexpr std::int64_t kRows = 20000;
  constexpr double kDeviation = 2;
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const MatrixRows rows = table(kRows, dtype);

    const Batch batch = applied(*noise({{"std", kDeviation}}, rows), rows);

    for (const std::int64_t column : {0, 1}) {
      const at::Tensor drawn = batch.inputs[0].select(1, column).to(at::kDouble).div(kDeviation);
      const auto moment = [&](double power) { return drawn.pow(power).mean().item<double>(); };
      // Of a standard normal variable x: the means of x, x^2, x^3 and x^4 are 0, 1, 0 and 3, the
      // variances of these powers 1, 2, 15 and 96.
      EXPECT_NEAR(moment(1), 0, five_of_mean(1, kRows));
      EXPECT_NEAR(moment(2), 1, five_of_mean(std::sqrt(2), kRows));
      EXPECT_NEAR(moment(3), 0, five_of_mean(std::sqrt(15), kRows));
      EXPECT_NEAR(moment(4), 3, five_of_mean(std::sqrt(96), kRows));
    }
    // Columns, rows that follow each other and inputs have nothing to do with each other.
    const at::Tensor a = batch.inputs[0].select(1, 0).to(at::kDouble).div(kDeviation);
    const at::Tensor b = batch.inputs[0].select(1, 1).to(at::kDouble).div(kDeviation);
    const at::Tensor pixel = batch.inputs[1].select(1, 0).select(1, 0).to(at::kDouble);
    EXPECT_NEAR(a.mul(b).mean().item<double>(), 0, five_of_mean(1, kRows));
    EXPECT_NEAR(a.slice(0, 1).mul(a.slice(0, 0, -1)).mean().item<double>(), 0,
                five_of_mean(1, kRows));
    EXPECT_NEAR(a.mul(pixel).mean().item<double>(), 0, five_of_mean(kDeviation, kRows));
  }
}

TEST_F(AugmentationTest, NoiseOfAnotherBatchIsAnother) {
  const MatrixRows rows = table(1000);
  const auto transform = noise({{"std", 1}}, rows);

  const at::Tensor one = applied(*transform, rows, {true, 1}).inputs[0].select(1, 0);
  const at::Tensor next = applied(*transform, rows, {true, 2}).inputs[0].select(1, 0);

  EXPECT_NEAR(one.mul(next).mean().item<double>(), 0, five_of_mean(1, 1000));
}

TEST_F(AugmentationTest, NoiseOfEachInputIsItsOwn) {
  MatrixRows::Matrices matrices = images(10, {4, 4}).matrices();
  matrices.spec.inputs.push_back({"depth", {4, 4}, {}, Role::kFeatures, at::kDouble});
  matrices.inputs.push_back(matrices.inputs[0].clone());
  const MatrixRows rows(std::move(matrices));

  const Batch batch = applied(*noise({}, rows), rows);

  const at::Tensor first = batch.inputs[0].sub(rows.matrices().inputs[0]);
  const at::Tensor second = batch.inputs[1].sub(rows.matrices().inputs[1]);
  EXPECT_NEAR(first.mul(second).mean().item<double>(), 0, five_of_mean(0.01, 160));
}

TEST_F(AugmentationTest, NoiseLeavesCategoriesAndMissingValuesAlone) {
  const MatrixRows rows = table(100);

  const Batch batch = applied(*noise({}, rows), rows);

  EXPECT_EQ(batch.inputs[2].scalar_type(), at::kLong);
  EXPECT_EQ(batch.inputs[2].abs().max().item<std::int64_t>(), 0);
  EXPECT_TRUE(std::isnan(batch.inputs[0][0][2].item<double>()));
  EXPECT_GT(batch.inputs[0].slice(0, 1).select(1, 2).abs().max().item<double>(), 0);
}

TEST_F(AugmentationTest, NoiseChangesWhatIsNamedAndNothingElse) {
  const MatrixRows rows = table(100);
  struct Case {
    Json parameters;
    std::array<double, 4> deviations;  // of a, b, c and the image
  };
  const Case cases[] = {{{{"std", 1}}, {1, 1, 1, 1}},
                        {{{"std", 1}, {"columns", {"b"}}}, {0, 1, 0, 0}},
                        {{{"std", 1}, {"inputs", {"image"}}}, {0, 0, 0, 1}},
                        {{{"std", 1}, {"inputs", {"features"}}}, {1, 1, 1, 0}},
                        {{{"std", 1}, {"columns", {"a"}}, {"inputs", {"image"}}}, {1, 0, 0, 1}},
                        {{{"std", {{"a", 2}, {"image", 50}}}}, {2, 0, 0, 50}},
                        {{{"std", {{"features", 3}, {"b", 50}}}}, {3, 50, 3, 0}},
                        {{{"std", 0}}, {0, 0, 0, 0}}};

  for (const Case& one : cases) {
    SCOPED_TRACE(one.parameters.dump());
    const Batch batch = applied(*noise(one.parameters, rows), rows);

    const at::Tensor table = batch.inputs[0].slice(0, 1);
    const at::Tensor changed[] = {table.select(1, 0), table.select(1, 1), table.select(1, 2),
                                  batch.inputs[1]};
    for (std::size_t i = 0; i < 4; ++i) {
      const at::Tensor root_mean_square = changed[i].square().mean().sqrt();
      EXPECT_NEAR(root_mean_square.item<double>(), one.deviations[i], one.deviations[i] / 2) << i;
    }
  }
}

// Rows of [[1, 2, 3], [4, 5, 6]].
TEST_F(AugmentationTest, FlipsMirrorLinesAndColumns) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const MatrixRows rows = images(2, {2, 3}, dtype);
    const auto flipped = [&](double horizontal, double vertical) {
      const auto transform = flip({{"horizontal", horizontal}, {"vertical", vertical}}, rows);
      return values(applied(*transform, rows).inputs[0][1]);
    };

    EXPECT_THAT(flipped(0, 0), ElementsAre(1, 2, 3, 4, 5, 6));
    EXPECT_THAT(flipped(1, 0), ElementsAre(3, 2, 1, 6, 5, 4));
    EXPECT_THAT(flipped(0, 1), ElementsAre(4, 5, 6, 1, 2, 3));
    EXPECT_THAT(flipped(1, 1), ElementsAre(6, 5, 4, 3, 2, 1));
  }
}

TEST_F(AugmentationTest, FlipsMirrorEachChannelByItself) {
  const MatrixRows rows = images(2, {2, 3, 2});  // three lines: the one in the middle stays

  const auto transform = flip({{"horizontal", 0}, {"vertical", 1}}, rows);

  EXPECT_THAT(values(applied(*transform, rows).inputs[0][0]),
              ElementsAre(5, 6, 3, 4, 1, 2, 11, 12, 9, 10, 7, 8));
}

TEST_F(AugmentationTest, FlipsHappenAsOftenAsAskedForInEachDirectionByItself) {
  constexpr int kRows = 20000;
  const MatrixRows rows = images(kRows, {2, 2});

  const auto transform = flip({{"horizontal", 0.3}, {"vertical", 0.6}}, rows);
  const std::map<Values, int> counts = counted(applied(*transform, rows).inputs[0]);

  const std::pair<Values, double> shares[] = {{{1, 2, 3, 4}, 0.7 * 0.4},
                                              {{2, 1, 4, 3}, 0.3 * 0.4},
                                              {{3, 4, 1, 2}, 0.7 * 0.6},
                                              {{4, 3, 2, 1}, 0.3 * 0.6}};
  ASSERT_EQ(counts.size(), 4U);
  for (const auto& [image, share] : shares) {
    EXPECT_NEAR(counts.at(image) / double{kRows}, share,
                five_of_mean(std::sqrt(share * (1 - share)), kRows));
  }
}

TEST_F(AugmentationTest, AllImagesOfARowAreMirroredAndCutAlike) {
  MatrixRows::Matrices matrices = images(200, {4, 4}).matrices();
  matrices.spec.inputs.push_back({"depth", {1, 4, 4}, {}, Role::kFeatures, at::kDouble});
  matrices.inputs.push_back(matrices.inputs[0].unsqueeze(1).clone());
  const MatrixRows rows(std::move(matrices));

  for (const auto& transform : {flip({}, rows), crop({}, rows), crop({{"size", 3}}, rows)}) {
    const Batch batch = applied(*transform, rows);

    EXPECT_TRUE(same(batch.inputs[1].squeeze(1), batch.inputs[0]));
    EXPECT_GT(counted(batch.inputs[0]).size(), 1U);
  }
}

// [[1, 2], [3, 4]] with one pixel of 9 around it.
TEST_F(AugmentationTest, CropsWithPaddingAreAllWindowsEquallyOften) {
  constexpr int kRows = 20000;
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const MatrixRows rows = images(kRows, {2, 2}, dtype);

    const auto transform = crop({{"padding", 1}, {"fill", 9}}, rows);
    const std::map<Values, int> counts = counted(applied(*transform, rows).inputs[0]);

    const Values windows[] = {{9, 9, 9, 1}, {9, 9, 1, 2}, {9, 9, 2, 9}, {9, 1, 9, 3}, {1, 2, 3, 4},
                              {2, 9, 4, 9}, {9, 3, 9, 9}, {3, 4, 9, 9}, {4, 9, 9, 9}};
    ASSERT_EQ(counts.size(), 9U);
    for (const Values& window : windows) {
      EXPECT_NEAR(counts.at(window) / double{kRows}, 1. / 9,
                  five_of_mean(std::sqrt(8. / 81), kRows));
    }
  }
}

// [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]], and the same plus 12 in a second channel.
TEST_F(AugmentationTest, SmallerCropsAreWindowsInTrainingAndTheMiddleOtherwise) {
  const MatrixRows rows = images(600, {2, 3, 4});
  const auto transform = crop({{"size", {2, 2}}}, rows);

  const Batch plain = applied(*transform, rows, {});
  const std::map<Values, int> counts = counted(applied(*transform, rows).inputs[0]);

  EXPECT_EQ(transform->output_spec(rows.spec()).inputs[0].shape,
            (std::vector<std::int64_t>{2, 2, 2}));
  EXPECT_EQ(counted(plain.inputs[0]), (std::map<Values, int>{{{2, 3, 6, 7, 14, 15, 18, 19}, 600}}));
  ASSERT_EQ(counts.size(), 6U);
  for (const double corner : {1, 2, 3, 5, 6, 7}) {
    const Values window = {corner,      corner + 1,  corner + 4,  corner + 5,
                           corner + 12, corner + 13, corner + 16, corner + 17};
    EXPECT_EQ(counts.count(window), 1U) << corner;
  }
}

TEST_F(AugmentationTest, SmallerCropsMayReachOverTheEdgeByThePadding) {
  const MatrixRows rows = images(600, {3, 1});

  const auto transform = crop({{"size", {2, 1}}, {"padding", 1}}, rows);
  const std::map<Values, int> counts = counted(applied(*transform, rows).inputs[0]);

  // Up to one pixel over each edge: top and bottom, and past the only column on either side.
  std::vector<Values> windows;
  for (const auto& [window, count] : counts)
    windows.push_back(window);
  EXPECT_THAT(windows,
              ElementsAre(Values{0, 0}, Values{0, 1}, Values{1, 2}, Values{2, 3}, Values{3, 0}));
}

TEST_F(AugmentationTest, EvaluationLeavesRowsAlone) {
  const MatrixRows pictures = images(50, {4, 4});
  const MatrixRows numbers = table(50);

  for (const auto& transform :
       {noise({}, pictures), flip({{"vertical", 1}}, pictures), crop({}, pictures)}) {
    expect_same(applied(*transform, pictures, {.training = false, .seed = 7}),
                gathered(pictures, 0, 50));
    EXPECT_EQ(transform->output_spec(pictures.spec()), pictures.spec());
  }
  expect_same(applied(*noise({}, numbers), numbers, {.training = false, .seed = 7}),
              gathered(numbers, 0, 50));
}

TEST_F(AugmentationTest, TheSamePlaceInADocumentDrawsTheSameAndAnotherOneOtherNumbers) {
  const MatrixRows numbers = table(100);
  const MatrixRows pictures = images(100, {2, 2});
  const auto drawn = [&](const char* place) {
    return applied(*noise({}, numbers, place), numbers).inputs[0].select(1, 0);
  };
  const auto mirrored = [&](const char* place) {
    return applied(*flip({}, pictures, place), pictures).inputs[0];
  };

  EXPECT_TRUE(same(drawn("/transforms/0"), drawn("/transforms/0")));
  EXPECT_TRUE(same(mirrored("/transforms/0"), mirrored("/transforms/0")));
  EXPECT_NEAR(drawn("/transforms/0").mul(drawn("/transforms/1")).mean().item<double>(), 0,
              five_of_mean(0.01, 100));
  EXPECT_FALSE(same(mirrored("/transforms/0"), mirrored("/transforms/1")));
}

// So a batch can be prepared in parts, each of which skips the rows before it.
TEST_F(AugmentationTest, WhatARowDrawsIsAFunctionOfItsPlaceInTheBatch) {
  const MatrixRows numbers = table(60);
  const MatrixRows pictures = images(60, {4, 4});
  const MatrixRows few_numbers = table(23);
  const MatrixRows few_pictures = images(23, {4, 4});

  const auto noisy = noise({}, numbers);
  expect_same(applied(*noisy, few_numbers), applied(*noisy, numbers).slice(0, 23));
  for (const auto& transform :
       {noise({}, pictures), flip({{"vertical", 0.5}}, pictures), crop({}, pictures)}) {
    expect_same(applied(*transform, few_pictures), applied(*transform, pictures).slice(0, 23));
  }
}

TEST_F(AugmentationTest, OtherParametersDrawTheSameNumbers) {
  const MatrixRows numbers = table(100);

  const at::Tensor one = applied(*noise({{"std", 1}}, numbers), numbers).inputs[1];
  const at::Tensor two = applied(*noise({{"std", 2}}, numbers), numbers).inputs[1];

  EXPECT_TRUE(same(one.mul(2), two));
}

TEST_F(AugmentationTest, AnyNumberOfWorkersGivesTheSameBits) {
  const MatrixRows rows = images(300, {2, 5, 5}, at::kFloat);
  const auto cropped = crop({{"padding", 2}}, rows);
  const auto smaller = crop({{"size", 4}}, rows);
  const auto mirrored = flip({}, rows, "/transforms/2");
  MatrixRows::Matrices after = images(1, {2, 4, 4}, at::kFloat).matrices();
  const MatrixRows small(std::move(after));
  const auto mirrored_small = flip({}, small, "/transforms/2");
  const auto noisy = noise({}, small, "/transforms/3");
  engine::PipelineOptions options;
  options.shuffle = options.training = true;
  at::Tensor expected;

  for (const int workers : {1, 2, 3, 8}) {
    engine::ThreadBudget budget(workers);
    budget.run([&] {
      engine::BatchPipeline pipeline(
          rows, row_numbers(0, 300),
          {rows.spec(),
           {cropped.get(), mirrored.get(), smaller.get(), mirrored_small.get(), noisy.get()}},
          options, RandomStreams(5));
      std::vector<at::Tensor> parts;
      for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
        const auto stream = pipeline.epoch(epoch);
        for (Batch batch; stream->next(batch);)
          parts.push_back(batch.inputs[0].clone());
      }
      const at::Tensor got = at::cat(parts);
      if (!expected.defined())
        expected = got;
      EXPECT_TRUE(same(got, expected)) << workers << " workers";
    });
  }
}

TEST_F(AugmentationTest, MistakesAreOneSentenceEach) {
  const MatrixRows numbers = table(2);
  const MatrixRows pictures = images(2, {3, 4});
  MatrixRows::Matrices matrices = images(2, {3}).matrices();
  matrices.spec.inputs[0].name = "spectrum";
  const MatrixRows spectra(std::move(matrices));

  EXPECT_EQ(message_of([&] {
              noise({{"columns", {"bb"}}}, numbers);
            }),
            "noise: there is no column \"bb\"; the columns are a, b, c, color; did you mean "
            "\"b\"?");
  EXPECT_EQ(message_of([&] {
              noise({{"inputs", {"a"}}}, numbers);
            }),
            "noise: there is no input \"a\"; the inputs are features, image, "
            "categories");
  EXPECT_EQ(message_of([&] {
              noise({{"std", {{"imag", 1}}}}, numbers);
            }),
            "noise: there is no column or input \"imag\"; there are a, b, c, color, features, "
            "image, categories; did you mean \"image\"?");
  EXPECT_EQ(message_of([&] {
              noise({{"columns", {"color"}}}, numbers);
            }),
            "noise: column \"color\" is a category; only numbers can have noise");
  EXPECT_EQ(message_of([&] {
              noise({{"std", Json::object()}}, numbers);
            }),
            "/std: must name a column or an input");
  EXPECT_EQ(message_of([&] {
              noise({{"std", {{"a", 1}}}, {"columns", {"b"}}}, numbers);
            }),
            "/std: names columns and inputs itself; leave out \"columns\" and \"inputs\"");
  EXPECT_EQ(message_of([&] {
              flip({{"inputs", {"features"}}}, numbers);
            }),
            "random_flip: input \"features\" is a table; an image has the shape [height, width] or "
            "[channels, height, width]");
  EXPECT_EQ(message_of([&] {
              flip({{"inputs", {"img"}}}, pictures);
            }),
            "random_flip: there is no input \"img\"; the inputs are image");
  EXPECT_EQ(message_of([&] { flip({}, spectra); }),
            "random_flip: no input is an image; an image has the shape [height, width] or "
            "[channels, height, width], and the inputs are spectrum (of the shape [3])");
  EXPECT_EQ(message_of([&] {
              crop({{"size", {4, 4}}}, pictures);
            }),
            "random_crop: input \"image\" is 3 x 4; \"size\" must not be larger, got 4 x 4");
  EXPECT_EQ(message_of([&] {
              crop({{"padding", 0}}, pictures);
            }),
            "/padding: must be at least 1 without \"size\", or the window has one place only");
}

TEST_F(AugmentationTest, OutputSpecFindsTheMistakesThatFitWould) {
  const MatrixRows numbers = table(2);

  EXPECT_THROW(plugin().make<Transform>("noise", {{"columns", {"z"}}})->output_spec(numbers.spec()),
               DataError);
  EXPECT_THROW(plugin()
                   .make<Transform>("random_flip", {{"inputs", {"features"}}})
                   ->output_spec(numbers.spec()),
               DataError);
  EXPECT_THROW(plugin().make<Transform>("random_crop", {{"size", 3}})->output_spec(numbers.spec()),
               DataError);
}

}  // namespace
}  // namespace treadle::testing
