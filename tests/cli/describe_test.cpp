// `data describe`: the data of documents, from file to text and JSON. Figures are tested in
// framework/host/describe; the page docs/guide/data-description.md is run by guide_test.cpp.
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "command_fixture.h"

namespace treadle {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Customers of whom every third leaves: tickets are numbered by the outcome, the date of the
/// leaving is filled in for those who leave, and half of the minutes are missing.
class Describe : public CommandFixture {
 protected:
  Describe() {
    std::string text = "ticket_no,signed,minutes,plan,ended,note,left\n";
    for (int i = 0; i < 240; ++i) {
      const bool leaves = i % 3 == 0;
      const int place = leaves ? i / 3 : 80 + i - i / 3;
      const std::string day = std::to_string(i * 11 % 28 + 1);
      const std::string date =
          "2024-0" + std::to_string(i % 9 + 1) + "-" + (day.size() == 1 ? "0" : "") + day;
      text += std::to_string(1000 + 7 * place) + "," + date + "," +
              (i % 2 == 0 ? "" : std::to_string(i * 37 % 101)) + "," +
              (i * 13 % 5 < 2 ? "basic" : "full") + "," + (leaves ? date : "") + ",text " +
              std::to_string(i) + "," + (leaves ? "yes" : "no") + "\n";
    }
    write("churn.csv", text);
    given_churn_document();
  }

  void given_churn_document() {
    write("churn.json", json{{"treadle", 1},
                             {"data",
                              {{"use", "csv"},
                               {"path", "churn.csv"},
                               {"target", "left"},
                               {"columns", {"ticket_no", "minutes", "plan", "ended"}},
                               {"categorical", {"plan"}},
                               {"dates", {"ended"}},
                               {"missing", "nan"}}},
                             {"transforms", {"impute", "one_hot", "standardize"}},
                             {"model", "linear"},
                             {"validation", {{"use", "hold_out"}, {"fraction", 0.25}}}}
                            .dump());
  }
};

TEST_F(Describe, NamesTheLeaksOfATable) {
  const Finished done = run({"data", "describe", "churn.json"});

  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(
      done.out,
      AllOf(StartsWith("churn.json: 240 rows, "),
            HasSubstr("warning: \"ticket_no\" numbers the rows and predicts \"left\" (AUC 1.000)"),
            HasSubstr("warning: whether \"ended.days\" has a value predicts \"left\""),
            HasSubstr("% of the validation rows are earlier than a training row by \"signed\""),
            HasSubstr("180 training rows, 60 validation rows"), Not(HasSubstr("\"minutes\""))));
}

TEST_F(Describe, WritesAllItFindsAsJson) {
  const Finished done = run({"data", "describe", "churn.json", "-o", "churn.data.json", "--json"});

  ASSERT_EQ(done.code, 0) << done.err;
  const json description = json::parse(done.out);
  EXPECT_EQ(json::parse(read(folder() / "churn.data.json")), description);
  EXPECT_EQ(description.at("rows"), 240);
  std::map<std::string, json> columns;
  for (const char* const role : {"inputs", "targets", "others"}) {
    for (const json& column : description.at(role))
      columns[column.at("name")] = column;
  }
  EXPECT_EQ(columns.at("minutes").at("missing"), 120);
  EXPECT_EQ(columns.at("plan").at("type"), "category");
  EXPECT_EQ(columns.at("left").at("values").at(0).at("rows"), 160);
  EXPECT_EQ(columns.at("signed").at("type"), "time");
  EXPECT_EQ(columns.at("signed").at("dates"), true);
  EXPECT_EQ(columns.at("note").at("type"), "text");
  EXPECT_EQ(columns.at("note").at("distinct"), 240);
  EXPECT_EQ(description.at("duplicates").at("rows"), 0);
}

TEST_F(Describe, PrintsNothingButTheDescriptionToTheStandardOutput) {
  const Finished done = run({"data", "describe", "churn.json", "-o", "-"});

  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(json::parse(done.out).at("described_rows"), 240);
}

TEST_F(Describe, FitsATerminal) {
  if (!terminals_exist())
    GTEST_SKIP() << "this machine has no pseudo-terminals";
  set("NO_COLOR", "1");
  const Finished done = run_on_terminal({"data", "describe", "churn.json"});

  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("ticket_no"));
  std::size_t columns = 0;
  for (const char c : done.out) {
    columns +=
        (static_cast<unsigned char>(c) & 0xC0) == 0x80 ? 0 : 1;  // of a character's bytes, one
    if (c == '\n')
      columns = 0;
    ASSERT_LE(columns, 101U) << done.out;  // with the carriage return
  }
}

TEST_F(Describe, DryRunsOfCheckWarnLikewise) {
  const Finished done = run({"check", "churn.json", "--dry-run"});

  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("warning: data: \"ticket_no\" numbers the rows"));
  const Finished clean =
      run({"check", "churn.json", "--dry-run", "--json", "--set",
           "data.columns=[\"minutes\", \"plan\", \"signed\"]", "--set", "data.dates=[\"signed\"]"});
  EXPECT_EQ(clean.json().at("suspicions"), json::array());
}

TEST_F(Describe, RefusesPipelines) {
  write("pipeline.json",
        json{{"treadle", 1}, {"stages", {{{"name", "one"}, {"document", "churn.json"}}}}}.dump());

  const Finished done = run({"data", "describe", "pipeline.json"});

  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.err, HasSubstr("describe those of the document of a stage"));
}

}  // namespace
}  // namespace treadle
