// What files of predictions count beside their lines.
#include "predict/prediction_writer.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>

#include <treadle/base/atomic_file.h>
namespace treadle::internal {
namespace {

/// Quantiles of three rows in the order in which a loss may list them; 1 where they have crossed.
Prediction quantiles(const std::vector<std::int64_t>& crossed,
                     const std::vector<double>& of_90 = {3, 4, 5},
                     const std::vector<double>& of_10 = {1, 2, 5}) {
  const auto numbers = [](const std::vector<double>& values) {
    return at::tensor(values, at::kFloat).view({-1, 1});
  };
  Prediction prediction;
  prediction.values = numbers(of_10);
  prediction.extras = {{"q0.9", numbers(of_90), 0.9}, {"q0.1", numbers(of_10), 0.1}};
  prediction.crossed = at::tensor(crossed, at::kLong).to(at::kBool);
  return prediction;
}

TEST(PredictionWriter, CountsLinesWhoseQuantilesCross) {
  std::string folder = (std::filesystem::temp_directory_path() / "treadle-writer-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::vector<TargetSpec> targets{number_target("y"), number_target("z")};
  Batch batch;
  batch.rows = at::arange(3, at::kLong);
  std::int64_t crossed = 0;

  write_file_atomically(std::filesystem::path(folder) / "out.csv", [&](FileWriter& file) {
    PredictionWriter writer(file, targets, {});
    writer.write({quantiles({0, 0, 0}), quantiles({0, 0, 0})}, batch);
    EXPECT_EQ(writer.crossed(), 0);
    writer.write({quantiles({0, 1, 1}), quantiles({0, 1, 0})}, batch);
    crossed = writer.crossed();
  });

  std::filesystem::remove_all(folder);
  EXPECT_EQ(crossed, 2) << "a line counts once, whatever crosses in it";
}

TEST(PredictionWriter, WritesTheDecisionsOnLabels) {
  std::string folder = (std::filesystem::temp_directory_path() / "treadle-writer-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  TargetSpec target;
  target.name = "tags";
  target.kind = TargetKind::kLabels;
  target.shape = {2};
  target.class_names = {"a", "b"};
  const std::vector<TargetSpec> targets{target};
  Batch batch;
  batch.rows = at::arange(1, at::kLong);
  Prediction prediction{TargetKind::kLabels, at::tensor({0.25, 0.75}, at::kFloat).view({1, 2})};
  prediction.decision = at::tensor({1, 0}, at::kLong).view({1, 2}).to(at::kBool);
  const auto file = std::filesystem::path(folder) / "out.csv";
  write_file_atomically(file, [&](FileWriter& out) {
    PredictionWriter(out, targets, {}).write({prediction}, batch);
  });
  std::ifstream written(file);
  const std::string text{std::istreambuf_iterator<char>(written), {}};
  std::filesystem::remove_all(folder);

  EXPECT_EQ(text, "row,p(a),predicted(a),p(b),predicted(b)\n0,0.25,1,0.75,0\n");
}

}  // namespace
}  // namespace treadle::internal
