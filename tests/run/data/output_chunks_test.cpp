// Losses that take logits in chunks: the runs they give, beside those of whole logits.
#include <cmath>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using testing::bits_of;
using ::testing::HasSubstr;
using testing::watching_runtime;
using testing::Workspace;
using Json = nlohmann::json;
namespace fs = std::filesystem;

class OutputChunks : public ::testing::Test {
 protected:
  OutputChunks() {
    std::ofstream text(workspace_.folder() / "text.txt");
    for (int i = 0; i < 40; ++i)
      text << (i % 3 == 0 ? "a dog digs holes.\n" : "my bird sings songs.\n");
    document_["data"]["path"] = (workspace_.folder() / "text.txt").string();
  }

  RunOutcome run(const Json& document) const {
    const Workspace own;
    const Runtime runtime = watching_runtime();
    RunOutcome outcome = run_workflow(runtime, runtime.resolve(document), own.options());
    bits_ = bits_of(outcome.folder);
    return outcome;
  }
  double loss_of(const Json& document) const {
    return run(document).result.training.validation->loss;
  }
  std::string bits(const Json& document) const {
    run(document);
    return bits_;
  }
  Json chunked(int chunks) const {
    Json document = document_;
    document["loss"] = {{"use", "cross_entropy"}, {"num_output_chunks", chunks}};
    return document;
  }

  Workspace workspace_;
  mutable std::string bits_;
  Json document_ = Json::parse(R"({
    "treadle": 1, "name": "text", "seed": 4,
    "data": {"use": "text", "tokenizer": "characters"},
    "sequence": {"use": "packed", "length": 12},
    "validation": {"use": "consecutive", "validation_size": 0.2},
    "model": {"use": "flow", "flow": [{"use": "graph", "builder": {
      "use": "gpt", "num_layers": 1, "num_heads": 2, "hidden_size": 12, "max_length": 12, "dropout": 0.1}}]},
    "loss": "cross_entropy",
    "optimizer": {"use": "adamw", "learning_rate": 0.01},
    "training": {"use": "standard", "max_steps": 20, "batch_size": 6},
    "resources": {"workers": 2}})");
};

TEST_F(OutputChunks, TrainAsWholeLogitsDo) {
  const double whole = loss_of(document_);

  for (const int chunks : {1, 3, 7})
    EXPECT_NEAR(loss_of(chunked(chunks)), whole, 2e-4) << chunks << " chunks";
}

// The weight of the head is that of the embedding, whose gradient comes from the trunk; parts of a
// batch add to gradients that are there.
TEST_F(OutputChunks, GiveTheSameBitsCompiledAndDynamicAndOnAnyWorkers) {
  Json document = chunked(4);
  document["training"]["gradients"] = {{"use", "accumulate"}, {"micro_batches", 2}};
  document["model"]["execution"] = "dynamic";
  const std::string expected = bits(document);

  document["model"]["execution"] = "compiled";
  EXPECT_EQ(bits(document), expected);
  document["resources"]["workers"] = 1;
  EXPECT_EQ(bits(document), expected);
}

TEST_F(OutputChunks, AddUpOverShards) {
  document_["resources"]["shards"] = 2;
  document_["model"]["flow"][0]["builder"]["dropout"] = 0;

  EXPECT_NEAR(loss_of(chunked(2)), loss_of(document_), 2e-4);
}

TEST_F(OutputChunks, AreComputedInSixteenBits) {
  document_["precision"] = "bf16-mixed";

  EXPECT_NEAR(loss_of(chunked(3)), loss_of(document_), 2e-2);
}

TEST_F(OutputChunks, NeedAHeadThatActsOnPositions) {
  Json document = chunked(3);
  document["model"]["flow"].push_back({{"use", "softplus"}});

  try {
    run(document);
    FAIL() << "the last layer is no head";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("num_output_chunks needs a model whose last layer"));
  }
}

}  // namespace
}  // namespace treadle
