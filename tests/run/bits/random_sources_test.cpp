// Every source of randomness there is: each gives the same bits for any number of workers, and
// after a stop and a resume with yet another number; and each is one.
#include <array>
#include <cstdint>
#include <fstream>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "npy_bytes.h"
#include "watched_runs.h"

namespace treadle::testing {
namespace {

using Json = nlohmann::json;

struct Source {
  std::string name;
  Json with;     ///< merged into the document
  Json without;  ///< merged over that: the source is gone, or another
};

void PrintTo(const Source& source, std::ostream* out) {
  *out << source.name;
}

void write_array(const fs::path& path, std::string_view shape, const auto& values) {
  std::ofstream(path, std::ios::binary) << arrays::npy_of(shape, values);
}

class RandomSource : public ::testing::TestWithParam<Source> {
 protected:
  RandomSource() : runtime_(watching_runtime()) {
    // 60 images of 4 x 4 pixels, brighter on one side.
    std::vector<float> pixels;
    std::vector<std::int64_t> labels;
    for (int row = 0; row < 60; ++row) {
      labels.push_back(row % 2);
      for (int pixel = 0; pixel < 16; ++pixel)
        pixels.push_back(static_cast<float>((pixel % 4 < 2) == (row % 2 == 0)) +
                         0.01F * static_cast<float>((row * 7 + pixel * 13) % 29));
    }
    write_array(images_.folder() / "x.npy", "(60, 4, 4)", pixels);
    write_array(images_.folder() / "y.npy", "(60,)", labels);
  }

  /// Nothing in it is random but what a source adds, and the initial weights.
  Json document(const Json& change) const {
    Json document = Json::parse(R"({
      "treadle": 1, "name": "source", "seed": 11,
      "data": {"use": "npy", "inputs": "x.npy", "target": "y.npy"},
      "model": {"use": "mlp", "hidden": [8]},
      "optimizer": {"use": "adamw", "learning_rate": 0.01}, "schedule": "watched",
      "training": {"use": "standard", "epochs": 4, "batch_size": 8, "shuffle": false,
                   "early_stopping": {"patience": "3ep"}, "checkpoint": {"every": "3st"}},
      "validation": {"use": "k_fold", "folds": 2, "shuffle": false}})");
    document.merge_patch(change);
    return document;
  }

  ResolvedWorkflow resolved(Json document, int workers) const {
    document["resources"]["workers"] = workers;
    return runtime_.resolve(document, images_.folder());
  }

  std::string bits(const Json& document, int workers) const {
    const Workspace workspace;
    return bits_of(run_workflow(runtime_, resolved(document, workers), workspace.options()).folder);
  }

  Runtime runtime_;
  Workspace images_;
};

TEST_P(RandomSource, GivesTheSameBitsForAnyNumberOfWorkersAndAfterAStop) {
  const Json with = document(GetParam().with);
  const std::string expected = bits(with, 1);

  for (const int workers : {2, 3, 8})
    EXPECT_EQ(bits(with, workers), expected) << workers << " workers";
  for (const int steps : {5, 19}) {
    const Workspace workspace;
    RunOptions options = workspace.options();
    const Impatient impatient(runtime_, steps);
    options.stop = impatient.token();
    EXPECT_THROW(run_workflow(runtime_, resolved(with, 3), options), Interrupted);
    const fs::path run = fs::directory_iterator(options.output)->path();
    resume_run(runtime_, run, workspace.options());
    EXPECT_EQ(bits_of(run), expected) << "stopped after " << steps << " steps";
  }
}

TEST_P(RandomSource, IsOne) {
  Json without = document(GetParam().with);
  without.merge_patch(GetParam().without);

  EXPECT_NE(bits(without, 2), bits(document(GetParam().with), 2));
}

std::vector<Source> sources() {
  const auto parse = [](const char* text) { return Json::parse(text); };
  const char* const one_training =
      R"({"validation": {"use": "hold_out", "folds": null, "shuffle": null}})";
  return {
      {"InitialWeights", Json::object(), parse(R"({"seed": 12})")},
      {"OrderOfRows", parse(R"({"training": {"shuffle": true}})"),
       parse(R"({"training": {"shuffle": false}})")},
      {"Folds", parse(R"({"validation": {"shuffle": true}})"),
       parse(R"({"validation": {"shuffle": false}})")},
      {"HoldOut", parse(one_training), parse(R"({"seed": 12})")},
      {"MadeData",
       parse(
           R"({"data": {"use": "moons", "inputs": null, "target": null, "rows": 64, "noise": 0.2}})"),
       parse(R"({"data": {"noise": 0}})")},
      {"Dropout", parse(R"({"model": {"dropout": 0.4}})"), parse(R"({"model": {"dropout": 0}})")},
      {"DropoutOfShards", parse(R"({"model": {"dropout": 0.4}, "resources": {"shards": 3}})"),
       parse(R"({"model": {"dropout": 0}})")},
      {"DropoutOfParts",
       parse(
           R"({"model": {"dropout": 0.4}, "training": {"gradients": {"use": "accumulate", "micro_batches": 2}}})"),
       parse(R"({"model": {"dropout": 0}})")},
      {"DropoutComputedAgain",
       parse(R"({"model": {"hidden": [8, 8], "dropout": 0.4, "recompute_layers": 1}})"),
       parse(R"({"model": {"dropout": 0}})")},
      {"DropoutWhileStatisticsAreRefreshed",
       parse(
           R"({"model": {"hidden": [8, 8], "dropout": 0.4, "norm": "batch"}, "training": {"swa": {"start": "50%"}}})"),
       parse(R"({"training": {"swa": null}})")},
      {"Noise", parse(R"({"transforms": [{"use": "noise", "std": 0.3}]})"),
       parse(R"({"transforms": []})")},
      {"RandomCrop", parse(R"({"transforms": [{"use": "random_crop", "padding": 1}]})"),
       parse(R"({"transforms": []})")},
      {"Mixup", parse(R"({"transforms": [{"use": "mixup", "alpha": 1}]})"),
       parse(R"({"transforms": []})")},
      {"CutmixOfShards",
       parse(R"({"transforms": [{"use": "cutmix", "per_row": true}], "resources": {"shards": 3}})"),
       parse(R"({"transforms": []})")},
      {"MixupOfParts",
       parse(
           R"({"transforms": [{"use": "mixup", "probability": 0.5}], "training": {"gradients": {"use": "accumulate", "micro_batches": 2}}})"),
       parse(R"({"transforms": []})")},
      {"ImageAugmentation",
       parse(
           R"({"transforms": [{"use": "random_resized_crop"}, {"use": "rand_augment", "max_value": 2}, {"use": "random_affine", "interpolation": "bilinear"}, {"use": "color_jitter", "max_value": 2}, "random_erasing"]})"),
       parse(R"({"transforms": []})")},
      {"RandomFlip", parse(R"({"transforms": [{"use": "random_flip"}]})"),
       parse(R"({"transforms": []})")},
  };
}

INSTANTIATE_TEST_SUITE_P(Each, RandomSource, ::testing::ValuesIn(sources()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace treadle::testing
