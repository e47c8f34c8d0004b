#include <treadle/sdk.h>

#include <ATen/ops/tensor.h>

#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/data/validation_contract.h>

namespace {

using namespace treadle::testing;
using Rows = std::vector<std::int64_t>;

std::unique_ptr<treadle::CrossValidator> make(nlohmann::json parameters = {}) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::CrossValidator>("@name@", std::move(parameters));
}

ValidationCase case_of(std::string name, nlohmann::json parameters = {}) {
  ValidationCase one{std::move(name), [parameters] { return make(parameters); }};
  one.is_random = false;
  return one;
}

// What every validation keeps: one case for each configuration that may behave differently.
INSTANTIATE_TEST_SUITE_P(@Name@, ValidationContract,
                         ::testing::Values(case_of("Defaults"), case_of("Gap", {{"gap", 7}}),
                                           case_of("TwoBlocks", {{"folds", 2}, {"refit", false}})),
                         CaseName());

treadle::SplitRequest numbers(std::int64_t rows) {
  treadle::SplitRequest request;
  request.rows = rows;
  request.targets = {treadle::number_target("price")};
  return request;
}

std::string message_of(const nlohmann::json& parameters, std::int64_t rows) {
  try {
    make(parameters)->plan(numbers(rows));
  } catch (const treadle::DataError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(@Name@, CutsNeighboursIntoBlocks) {
  const auto plan = make({{"folds", 3}})->plan(numbers(7));

  ASSERT_EQ(plan.folds.size(), 3U);
  EXPECT_EQ(plan.folds[0].name, "block-1");
  EXPECT_EQ(plan.folds[0].validation, (Rows{0, 1}));
  EXPECT_EQ(plan.folds[1].validation, (Rows{2, 3}));
  EXPECT_EQ(plan.folds[2].validation, (Rows{4, 5, 6}));
  EXPECT_EQ(plan.folds[1].training, (Rows{0, 1, 4, 5, 6}));
  EXPECT_TRUE(plan.refit);
}

TEST(@Name@, LeavesAGapAroundEachBlock) {
  const auto plan = make({{"folds", 3}, {"gap", 1}})->plan(numbers(6));

  EXPECT_EQ(plan.folds[0].training, (Rows{3, 4, 5}));
  EXPECT_EQ(plan.folds[1].training, (Rows{0, 5}));
  EXPECT_EQ(plan.folds[2].training, (Rows{0, 1, 2}));
}

TEST(@Name@, GoesByTheTimestamps) {
  treadle::SplitRequest request = numbers(4);
  request.timestamps = at::tensor({30.0, 10.0, 40.0, 20.0}, at::kDouble);

  const auto plan = make({{"folds", 2}})->plan(request);

  EXPECT_EQ(plan.folds[0].validation, (Rows{1, 3}));
  EXPECT_EQ(plan.folds[1].validation, (Rows{0, 2}));
}

TEST(@Name@, SaysWhyItCannotSplit) {
  EXPECT_EQ(message_of({{"folds", 5}}, 4), "\"folds\": 5 requires at least as many rows, got 4 rows");
  EXPECT_EQ(message_of({{"folds", 2}, {"gap", 5}}, 10),
            "validation leaves no row to train block-1 with; take a smaller \"gap\" than 5, or "
            "more folds");
}

}  // namespace
