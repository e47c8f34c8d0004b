#include "packed.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/core/data/batch.h>
#include <treadle/core/data/matrix_rows.h>
#include <treadle/core/validation/cross_validator.h>
#include <treadle/testing/data/sequence_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/batches.h>

namespace treadle::sequences {
namespace packed_rows {
namespace {

using nlohmann::json;
using testing::CaseName;
using testing::gathered;
using ::testing::HasSubstr;
using testing::SequenceCase;
using testing::SequenceContract;
using Numbers = std::vector<std::int64_t>;

std::unique_ptr<SequenceProvider> make(const json& parameters) {
  static const testing::PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<SequenceProvider>("packed", parameters);
}

SequenceCase case_of(std::string name, const json& parameters) {
  SequenceCase one{.name = std::move(name), .make = [parameters] { return make(parameters); }};
  one.joins_series = true;
  return one;
}

INSTANTIATE_TEST_SUITE_P(
    Packed, SequenceContract,
    ::testing::Values(case_of("ByTwelve", {{"length", 12}}), case_of("ByOne", {{"length", 1}}),
                      case_of("Overlapping", {{"length", 8}, {"stride", 3}}),
                      case_of("ApartInEvaluation",
                              {{"length", 6}, {"stride", 1}, {"evaluation_stride", 9}})),
    CaseName());

/// Tokens 0, 1, 2, …, each followed by the next.
MatrixRows::Matrices tokens(std::int64_t count) {
  MatrixRows::Matrices rows;
  rows.spec.inputs = {{"tokens", {}, {}, Role::kTokens, at::kLong, 100}};
  rows.spec.targets = {treadle::class_target("next_token", std::vector<std::string>(100, "x"))};
  rows.inputs = {at::arange(count, at::kLong)};
  rows.targets = {at::arange(1, count + 1, at::kLong)};
  return rows;
}

TEST(Packed, GivesEachTokenOnceWithItsTarget) {
  const MatrixRows rows(tokens(11));

  const auto samples = make({{"length", 4}})->samples(rows);

  const Batch batch = gathered(*samples, 0, samples->rows());
  EXPECT_TRUE(batch.inputs[0].equal(at::arange(8, at::kLong).view({2, 4})));
  EXPECT_TRUE(batch.targets[0].equal(at::arange(1, 9, at::kLong).view({2, 4})));
  EXPECT_EQ(samples->spec().inputs.size(), 1U) << "a single document needs no segments";
  EXPECT_EQ(samples->spec().inputs[0].vocabulary_size, 100);
  EXPECT_EQ(samples->spec().targets[0].shape, (Numbers{4}));
}

TEST(Packed, KeepsDocumentsApartAndWeighsTheirTokens) {
  MatrixRows::Matrices matrices = tokens(6);
  matrices.groups = at::tensor({7, 7, 3, 3, 3, 9}, at::kLong);
  matrices.spec.has_weights = true;
  matrices.weights = at::tensor({1.F, 0.F, 1.F, 1.F, 0.F, 0.F});
  const MatrixRows rows(std::move(matrices));

  const auto samples = make({{"length", 3}})->samples(rows);

  const Batch batch = gathered(*samples, 0, 2);
  EXPECT_EQ(samples->spec().inputs[1].name, "segments");
  EXPECT_EQ(samples->spec().inputs[1].of, "tokens");
  EXPECT_TRUE(batch.inputs[1].equal(at::tensor({0, 0, 1, 0, 0, 1}, at::kLong).view({2, 3})));
  EXPECT_TRUE(
      batch.position_weights[0].equal(at::tensor({1.F, 0.F, 1.F, 1.F, 0.F, 0.F}).view({2, 3})));
  EXPECT_FALSE(samples->spec().has_weights);
}

// Of the samples that begin at 0, 1, 2, … those at 2, 6 and 10 lie four rows apart.
TEST(Packed, EvaluatesSamplesThatDoNotOverlap) {
  const MatrixRows rows(tokens(20));
  const auto samples = make({{"length", 4}, {"stride", 1}})->samples(rows);

  EXPECT_EQ(samples->evaluated(Numbers{2, 3, 4, 5, 6, 7, 10}), (Numbers{2, 6, 10}));
  EXPECT_EQ(samples->evaluated(Numbers{10, 2, 3}), (Numbers{10, 2}));
}

TEST(Packed, RefusesWhatItCannotPack) {
  const auto complaint_of = [](const json& parameters, MatrixRows::Matrices matrices) {
    const MatrixRows rows(std::move(matrices));
    try {
      make(parameters)->samples(rows);
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  EXPECT_THAT(complaint_of({{"length", 5}}, tokens(4)),
              HasSubstr("there are 4 rows, and a sample of the sequence packed has 5"));
  MatrixRows::Matrices varying = tokens(4);
  varying.spec.inputs[0].shape = {kVaries};
  varying.inputs[0] = varying.inputs[0].view({4, 1});
  EXPECT_THAT(complaint_of({{"length", 2}}, std::move(varying)),
              HasSubstr("that of input \"tokens\" varies"));
}

}  // namespace
}  // namespace packed_rows
}  // namespace treadle::sequences
