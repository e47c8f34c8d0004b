#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/data/matrix_rows.h>
#include <treadle/core/data/transform.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/batches.h>

namespace treadle::testing {
namespace {

using ::testing::ElementsAre;
using Json = nlohmann::json;

class RareCategoriesTest : public ::testing::Test {
 protected:
  /// Town: Bern 1, Graz 4, Ulm 2 rows, Wien none, one missing; size: S 3, XL 5.
  static MatrixRows towns() {
    MatrixRows::Matrices matrices;
    matrices.spec.inputs = {
        {"categories",
         {2},
         {{"town", {"Bern", "Graz", "Ulm", "Wien"}, true}, {"size", {"S", "XL"}}},
         Role::kCategories,
         at::kLong}};
    matrices.inputs = {
        at::tensor({1, 0, 1, 1, 2, 1, 1, 0, 0, 1, -1, 1, 2, 0, 1, 1}, at::kLong).view({8, 2})};
    return MatrixRows(std::move(matrices));
  }

  static std::unique_ptr<Transform> fitted(const Json& parameters, const RowReader& reader) {
    static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
    auto transform = plugin.make<Transform>("rare_categories", parameters);
    std::vector<std::int64_t> rows(static_cast<std::size_t>(reader.rows()));
    std::iota(rows.begin(), rows.end(), 0);
    transform->fit(reader, rows);
    return transform;
  }

  static std::vector<std::string> names(const Transform& transform, std::size_t column) {
    return transform.output_spec(towns().spec()).inputs[0].columns[column].categories;
  }

  static std::vector<std::int64_t> codes(const Transform& transform, std::int64_t column) {
    const MatrixRows rows = towns();
    Batch batch = gathered(rows, 0, rows.rows());
    transform.apply(batch, ApplyContext{});
    const at::Tensor chosen = batch.inputs[0].select(1, column).contiguous();
    return {chosen.data_ptr<std::int64_t>(), chosen.data_ptr<std::int64_t>() + chosen.numel()};
  }
};

TEST_F(RareCategoriesTest, CategoriesOfFewTrainingRowsBecomeOneBehindTheOthers) {
  const auto transform = fitted({{"min_count", 2}}, towns());

  EXPECT_THAT(names(*transform, 0), ElementsAre("Graz", "Ulm", "rare"));
  EXPECT_THAT(codes(*transform, 0), ElementsAre(0, 0, 1, 0, 2, -1, 1, 0));
  EXPECT_THAT(names(*transform, 1), ElementsAre("S", "XL")) << "none is rare";
  EXPECT_THAT(codes(*transform, 1), ElementsAre(0, 1, 1, 0, 1, 1, 0, 1));
}

TEST_F(RareCategoriesTest, OnlyTheMostFrequentCategoriesStay) {
  const auto transform = fitted({{"min_count", 1}, {"max_categories", 1}, {"name", "XL"}}, towns());

  EXPECT_THAT(names(*transform, 0), ElementsAre("Graz", "XL"));
  EXPECT_THAT(codes(*transform, 0), ElementsAre(0, 0, 1, 0, 1, -1, 1, 0));
  EXPECT_THAT(names(*transform, 1), ElementsAre("XL")) << "the name of one that stays";
  EXPECT_THAT(codes(*transform, 1), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0));
}

TEST_F(RareCategoriesTest, OtherColumnsStayAsTheyAre) {
  const auto transform = fitted({{"min_count", 4}, {"columns", {"size"}}}, towns());

  EXPECT_THAT(names(*transform, 0), ElementsAre("Bern", "Graz", "Ulm", "Wien"));
  EXPECT_THAT(codes(*transform, 0), ElementsAre(1, 1, 2, 1, 0, -1, 2, 1));
  EXPECT_THAT(names(*transform, 1), ElementsAre("XL", "rare"));
}

TEST_F(RareCategoriesTest, StateThatNamesNoCategoryIsRefused) {
  const auto transform = fitted({{"min_count", 2}}, towns());
  StateDict state = transform->state();
  state.put("input_0_codes", state.tensor("input_0_codes") + 3);

  try {
    fitted({{"min_count", 2}}, towns())->load_state(state);
    FAIL() << "accepted";
  } catch (const StorageError& error) {
    EXPECT_STREQ(error.what(), "saved codes of categories are not those of any category");
  }
}

}  // namespace
}  // namespace treadle::testing
