#include "terminal/reasons_text.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace treadle::cli {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

json reasons() {
  return json::parse(R"({
    "rows": 200, "rows_available": 900, "rows_from": "validation", "rows_chose": ["weights"],
    "parts": [{"name": "fold-1", "rows": 100}, {"name": "fold-2", "rows": 100}],
    "targets": [{
      "target": "price", "kind": "numbers", "outputs": ["price"],
      "loss": {"name": "squared_error"},
      "importance": {"measure": "rmse", "direction": "minimize", "columns": [
        {"columns": ["area", "rooms"], "mean": 0.8, "deviation": 0.1},
        {"columns": ["town\u001b[1m"], "mean": 0.2, "deviation": null}]},
      "worst_rows": [{"place": "houses.csv:7", "actual": 3.5, "predicted": 1.5, "loss": 4.0}],
      "subgroups": {"tried": 12, "found": [
        {"where": [{"column": "town", "level": "Ulm"}, {"column": "area", "level": "below 60"}],
         "rows": 40, "mean_loss": 2.0, "mean_loss_outside": 0.5, "p_value": 0.001}]}}]})");
}

std::string text_of(const json& reasons) {
  return reasons_text(reasons, Terminal(1, /*is_terminal=*/false, /*has_colours=*/false));
}

TEST(ReasonsText, NamesTheRowsAndTheirChoices) {
  EXPECT_THAT(text_of(reasons()),
              HasSubstr("on 200 rows drawn from 900 of validation, each predicted by the fold that "
                        "was not trained on it; they also chose: weights"));
}

TEST(ReasonsText, ShowsImportancesRowsAndSubgroups) {
  const std::string text = text_of(reasons());
  EXPECT_THAT(text,
              AllOf(HasSubstr("Importance (rise of rmse when a column is permuted)"),
                    HasSubstr("area + rooms   0.8000  0.1000  ████████████████████\n"),
                    HasSubstr("houses.csv:7  3.5000  1.5000     4.0000"),
                    HasSubstr("town: Ulm, area: below 60    40     2.0000   0.5000  0.0010\n")))
      << text;
  EXPECT_THAT(text, Not(HasSubstr("\x1b"))) << "a column's name does not control the terminal";
}

TEST(ReasonsText, ShowsUndefinedImportancesWithTheReason) {
  json undefined = reasons();
  json& first = undefined["targets"][0]["importance"]["columns"][0];
  first["mean"] = nullptr;
  first["undefined"] = "all rows are of class \"yes\"";
  undefined["targets"][0]["subgroups"]["found"] = json::array();
  EXPECT_THAT(text_of(undefined),
              AllOf(HasSubstr("area + rooms        -  0.1000\n"),
                    HasSubstr("undefined: all rows are of class \"yes\""),
                    HasSubstr("No subgroup of 12 is significantly worse than the other rows.")));
}

TEST(ReasonsText, LeavesOutSubgroupsWhereNoneWereTried) {
  json of_images = reasons();
  of_images["targets"][0]["subgroups"] = {{"tried", 0}, {"found", json::array()}};

  EXPECT_THAT(text_of(of_images), Not(HasSubstr("ubgroup")));
}

}  // namespace
}  // namespace treadle::cli
