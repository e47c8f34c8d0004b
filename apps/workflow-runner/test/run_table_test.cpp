#include "compare/run_table.h"

#include <string>

#include <gtest/gtest.h>

#include "terminal/terminal.h"

namespace treadle::cli {
namespace {

using Json = nlohmann::json;

TEST(RunTable, SettingsThatALineHasNoRoomForAreATableOfTheirOwn) {
  RunTable table;
  table.numbers = {"loss"};
  table.keys = {"optimizer.learning_rate"};
  table.rows = {{"runs/a", {0.5, 0.0017118036464596556}}, {"runs/b", {0.25, 0.3}}};
  const Terminal terminal(-1, true, false);  // 80 columns

  EXPECT_EQ(table.text(terminal),
            "run       loss  optimizer.learning_rate\n"
            "runs/a  0.5000                0.0017118\n"
            "runs/b  0.2500                      0.3\n");
  table.keys.emplace_back("training.early_stopping.patience");
  table.keys.emplace_back("training.batch_size");
  for (RunTable::Row& row : table.rows)
    row.values.insert(row.values.end(), {Json("10ep"), Json(8)});
  EXPECT_EQ(table.text(terminal),
            "run       loss\n"
            "runs/a  0.5000\n"
            "runs/b  0.2500\n"
            "\n"
            "Settings\n"
            "setting                              runs/a  runs/b\n"
            "optimizer.learning_rate           0.0017118     0.3\n"
            "training.early_stopping.patience       10ep    10ep\n"
            "training.batch_size                       8       8\n");
}

}  // namespace
}  // namespace treadle::cli
