#include <string>

#include <gmock/gmock.h>

#include "report/sections/sections.h"

namespace treadle::report {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Json reasons() {
  return Json::parse(R"({
    "rows": 200, "rows_available": 900, "rows_from": "test", "rows_chose": [],
    "parts": [{"name": "final", "rows": 200}],
    "targets": [{
      "target": "price", "kind": "numbers", "outputs": ["price"],
      "loss": {"name": "squared_error"},
      "importance": {"measure": "r2", "direction": "maximize", "columns": [
        {"columns": ["area"], "mean": 0.8, "deviation": 0.1},
        {"columns": ["town"], "mean": null, "deviation": null, "undefined": "one row"}]},
      "partial_dependence": [],
      "shap": {"background_rows": 50, "rows": [{}, {}],
               "mean_abs": [{"column": "area", "values": [0.5]}, {"column": "town", "values": [0.1]}]},
      "worst_rows": [{"place": "houses.csv:7", "actual": 3.5, "predicted": 1.5, "loss": 4.0,
                      "picture": "data:image/png;base64,AA==",
                      "values": {"area": 60, "town": "Ulm"}}],
      "subgroups": {"tried": 12, "least_rows": 30, "found": []}}]})");
}

/// The card with that title; null where the section has none.
Json card_of(const List& blocks, const std::string& title) {
  for (const Json& block : blocks) {
    if (block.value("title", "") == title)
      return block;
    if (block.value("block", "") == "group") {
      const Json found = card_of(List(block["blocks"].begin(), block["blocks"].end()), title);
      if (!found.is_null())
        return found;
    }
  }
  return {};
}

List blocks() {
  List all = reasons_section(reasons());
  std::erase_if(all, [](const Json& block) { return block.is_null(); });
  return all;
}

TEST(ReasonsSection, IsEmptyWithoutReasons) {
  EXPECT_THAT(reasons_section({}), IsEmpty());
}

TEST(ReasonsSection, ShowsImportancesAsBarsAndUndefinedOnesAsUnknown) {
  const Json card = card_of(blocks(), "Importance of columns");
  const Json& rows = card.at("blocks")[0].at("rows");
  EXPECT_EQ(rows[0], Json({{"label", "area"}, {"value", 0.8}, {"deviation", 0.1}}));
  EXPECT_EQ(rows[1].at("value"), Json({{"unknown", "one row"}}));
  EXPECT_THAT(card.dump(), HasSubstr("Loss of r2 when the column is permuted"));
}

TEST(ReasonsSection, ShowsRowsWithTheirColumnsByImportanceAndPictures) {
  const Json card = card_of(blocks(), "Worst rows (by squared_error)");
  EXPECT_EQ(card.at("blocks")[0].at("block"), "gallery");
  const Json& table = card.at("blocks")[1];
  EXPECT_EQ(table.at("columns"), Json({"row", "actual", "predicted", "loss", "area", "town"}));
  EXPECT_EQ(table.at("rows")[0][5], "Ulm");
}

TEST(ReasonsSection, NamesTheRowsAndThatNoSubgroupIsWorse) {
  EXPECT_THAT(card_of(blocks(), "Reasons").dump(),
              testing::AllOf(HasSubstr("rows, drawn from"), HasSubstr("of test"),
                             Not(HasSubstr("also chose"))));
  EXPECT_THAT(card_of(blocks(), "Worse subgroups").dump(), HasSubstr("None of "));
}

}  // namespace
}  // namespace treadle::report
