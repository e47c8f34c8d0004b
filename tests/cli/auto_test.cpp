// `auto`: what it shows and writes, what it refuses, and what it leaves. Documents and guesses are
// tested in framework/host/automl, and the page docs/guide/auto.md is run by guide_test.cpp.
#include <string>

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

class Auto : public CommandFixture {
 protected:
  /// A table in which "y" follows from "x", with other columns beside it.
  void write_table(int rows, const std::string& separator = ",") {
    std::string text;
    for (const char* name : {"x", "day", "color", "y"})
      text += std::string(name) + (std::string(name) == "y" ? "\n" : separator);
    for (int i = 0; i < rows; ++i) {
      const bool is_high = i % 2 == 0;
      text += std::to_string(is_high ? i % 7 + 20 : i % 7) + ".5" + separator + "2024-01-" +
              (i % 28 < 9 ? "0" : "") + std::to_string(i % 28 + 1) + separator +
              (i % 5 == 0   ? ""
               : i % 3 == 0 ? "red"
                            : "blue") +
              separator + (is_high ? "high" : "low") + "\n";
    }
    write("table.csv", text);
  }
  Finished document_only(std::vector<std::string> more = {}) {
    std::vector<std::string> words{"auto", "table.csv",       "--target",
                                   "y",    "--document-only", "a.json"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
};

TEST_F(Auto, LeavesAModelThatPredictsRowsUnlikeThoseOfTheTraining) {
  write_table(60);

  const Finished done = run({"auto", "table.csv", "--target", "y", "--trials", "3", "--families",
                             "linear,mlp", "--set", "training.epochs=30", "--json"});

  ASSERT_EQ(done.code, 0) << done.err;
  const std::string folder = json::parse(done.out).at("folder");
  write("new.csv", "color,x,day\ngreen,25.5,2024-01-16\n,,\n");
  const Finished predicted = run({"predict", folder, "new.csv", "-o", "p.csv"});
  EXPECT_EQ(predicted.code, 0) << predicted.err;
  EXPECT_THAT(read(this->folder() / "p.csv"), StartsWith("row,predicted,p(high),p(low)\n0,high,"));
  EXPECT_EQ(run({"check", folder + "/workflow.json"}).code, 0);
}

TEST_F(Auto, ShowsWhatItTakesTheTableForAndWritesTheDocument) {
  write_table(60, ";");

  const Finished done = document_only({"--drop", "day"});

  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, AllOf(StartsWith("table.csv: 60 rows, 4 columns\n"),
                              HasSubstr("  day     left out        -      28  as --drop says\n"),
                              HasSubstr("Task  classification of y: 2 different texts\n")));
  const json document = json::parse(read(folder() / "a.json"));
  EXPECT_EQ(document.at("data").at("separator"), ";");
  EXPECT_EQ(document.at("data").at("columns"), json({"x", "color"}));
  const Finished again = document_only({"--json", "--set", "seed=5"});
  EXPECT_EQ(json::parse(again.out).at("table").at("columns").size(), 4U);
  EXPECT_EQ(json::parse(read(folder() / "a.json")).at("seed"), 5);
}

TEST_F(Auto, NamesAColumnThatAloneGivesTheTargetAway) {
  write_table(120);

  const Finished done = run({"auto", "table.csv", "--target", "y", "--trials", "1", "--families",
                             "linear", "--set", "training.epochs=1"});

  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out + done.err, HasSubstr("data: "));
  EXPECT_THAT(done.out + done.err, HasSubstr("\"x\""));
}

TEST_F(Auto, SaysWhyThereIsNoEnsemble) {
  write_table(60);

  const Finished done = run({"auto", "table.csv", "--target", "y", "--trials", "1", "--families",
                             "linear", "--set", "training.epochs=1"});

  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("No ensemble: only one trial\n"));
}

TEST_F(Auto, ListsTheFirstColumnsOfAWideTable) {
  std::string names;
  std::string row;
  for (int i = 0; i < 200; ++i) {
    names += "c" + std::to_string(i) + ",";
    row += ",";
  }
  std::string text = names + "y\n";
  for (int i = 0; i < 20; ++i)
    text += std::to_string(i * i % 7) + ".5" + row + (i % 2 == 0 ? "a\n" : "b\n");
  write("table.csv", text);

  const std::string out = document_only().out;

  EXPECT_THAT(out, HasSubstr("  c49  "));
  EXPECT_THAT(out, Not(HasSubstr("  c50  ")));
  EXPECT_THAT(out, HasSubstr("  y       target"));
  EXPECT_THAT(out,
              HasSubstr("  … 150 more columns: 150 left out; --document-only FILE --json lists "
                        "all\n"));
}

TEST_F(Auto, SaysWhichFamiliesTakeTooLongForTheTime) {
  write_table(60);

  EXPECT_THAT(
      document_only({"--time", "0.01s"}).out,
      AllOf(HasSubstr("Left out  "), HasSubstr("tabm"), HasSubstr("saint"),
            HasSubstr("of which a trial takes too much of 0.01s; to try them, give more time "
                      "or name them with --families\n")));
  EXPECT_THAT(document_only({"--time", "0.01s", "--families", "saint"}).out,
              Not(HasSubstr("Left out")));
  EXPECT_EQ(json::parse(document_only({"--json"}).out).at("slow_families"), json::array());
}

TEST_F(Auto, ADocumentInAnotherFolderFindsTheTable) {
  write_table(60);
  std::filesystem::create_directory(folder() / "there");

  EXPECT_EQ(run({"auto", "table.csv", "--target", "y", "--document-only", "there/a.json"}).code, 0);

  EXPECT_EQ(json::parse(read(folder() / "there/a.json")).at("data").at("path"), "../table.csv");
  EXPECT_EQ(run({"check", "there/a.json", "--dry-run"}).code, 0);
}

// Below a nameless column of whole numbers that count nothing, and a nameless one of texts.
TEST_F(Auto, ColumnsWithoutNamesAreTrainedOn) {
  std::string text = ",,x,y\n";
  for (int i = 0; i < 60; ++i) {
    text += std::to_string(i % 7) + "." + std::to_string(i % 3) +
            (i % 2 == 0 ? ",red," : ",blue,") + std::to_string(i % 5) +
            (i % 2 == 0 ? ",high\n" : ",low\n");
  }
  write("table.csv", text);
  const std::vector<std::string> quick{
      "--trials", "1", "--families", "linear", "--set", "training.epochs=2", "--set", "name=t"};

  ASSERT_EQ(document_only(quick).code, 0);

  EXPECT_EQ(json::parse(read(folder() / "a.json")).at("data").at("columns"), json({0, 1, "x"}));
  const Finished done = run({"run", "a.json", "--json"});
  ASSERT_EQ(done.code, 0) << done.err;
  const Finished predicted =
      run({"predict", json::parse(done.out).at("folder"), "table.csv", "-o", "p.csv"});
  EXPECT_EQ(predicted.code, 0) << predicted.err;
}

TEST_F(Auto, ATargetThatFloat32IsNotEnoughForIsTrainedInFloat64) {
  std::string text = "x,y\n";
  for (int i = 0; i < 60; ++i)
    text += std::to_string(i) + ".5," + std::to_string(1'700'000'000'000 + 2 * i % 40) + "\n";
  write("table.csv", text);

  const Finished done = run({"auto", "table.csv", "--target", "y", "--task", "regression",
                             "--trials", "1", "--families", "linear", "--json"});

  ASSERT_EQ(done.code, 0) << done.err;
  const std::filesystem::path run_folder = json::parse(done.out).at("folder");
  const json result = json::parse(read(folder() / run_folder / "result.json"));
  // The deviation of the target is 11.5. In float32 all rows have the same one, and the error is 0.
  EXPECT_NEAR(result.at("metrics").at("rmse").get<double>(), 11.5, 1.5);
}

TEST_F(Auto, TheNumberOfTrialsMayBeSetAsAValueOfTheDocument) {
  write_table(60);

  const Finished done = document_only({"--set", "search.trials=3"});

  EXPECT_EQ(done.code, 0) << done.err;
  const json search = json::parse(read(folder() / "a.json")).at("search");
  EXPECT_EQ(search.at("trials"), 3);
  EXPECT_EQ(search.at("initial").size(), 3U);
  EXPECT_THAT(document_only({"--set", "search.trials=many"}).err, HasSubstr("/search/trials"));
}

TEST_F(Auto, TypesAreAListOrRepeated) {
  write_table(60);

  EXPECT_EQ(document_only({"--types", "x=category,color=category", "--types", "day=date"}).code, 0);

  EXPECT_EQ(json::parse(read(folder() / "a.json")).at("data").at("categorical"),
            json({"x", "color"}));
  EXPECT_THAT(document_only({"--types", "x,day=date"}).err,
              HasSubstr("got \"x\"; a column with a comma is quoted as in CSV: --types "
                        "'when=date,\"size, in m=number\"'"));
  EXPECT_THAT(document_only({"--drop", "\"x"}).err,
              HasSubstr("--drop \"\\\"x\": expected a closing "
                        "quote"));
}

// 81 rows are four batches of 20 and one row.
TEST_F(Auto, ARowThatIsLeftOverAloneDoesNotEndATrainingWithBatchNormalization) {
  write_table(81);

  const Finished done = run({"auto", "table.csv", "--target", "y", "--families", "resnet",
                             "--trials", "1", "--set", "training.epochs=1", "--set",
                             R"(search.space={"training.batch_size": {"choice": [20]}})", "--set",
                             R"(search.initial=[{"training.batch_size": 20}])"});

  EXPECT_EQ(done.code, 0) << done.err;
}

TEST_F(Auto, WhatCannotBeTrainedIsRefusedWithARemedy) {
  write_table(60);
  EXPECT_THAT(run({"auto", "table.csv"}).err, HasSubstr("auto needs --target COLUMN"));
  EXPECT_THAT(run({"auto", "table.csv", "--target", "z"}).err,
              HasSubstr("table.csv: there is no column \"z\" for --target; the columns are x, day, "
                        "color, y"));
  EXPECT_THAT(document_only({"--types", "x=text"}).err,
              HasSubstr("--types: expected COLUMN=TYPE, where TYPE is number, category, date"));
  EXPECT_THAT(document_only({"--task", "clasification"}).err,
              HasSubstr("did you mean \"classification\"?"));
  for (const char* time : {"abc", "20", "-5s", "0s", "10ep", "500ms"}) {
    const Finished refused = document_only({"--time", time});
    EXPECT_EQ(refused.code, 2) << time << ": " << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("--time: expected wall time above zero")) << time;
  }
  EXPECT_THAT(document_only({"--families", "forest"}).err, HasSubstr("no family is called"));
  EXPECT_EQ(run({"auto", "absent.csv", "--target", "y"}).code, 5);
  write("table.csv", "");
  EXPECT_THAT(document_only().err, HasSubstr("table.csv:1: the file is empty"));
  write("table.csv", "x,y\n");
  EXPECT_THAT(document_only().err, HasSubstr("table.csv: there is no row"));
  write("table.csv", "x,y\n1,2\n");
  EXPECT_THAT(document_only().err, HasSubstr("at least 10 are needed"));
  write("table.csv", "x,x,y\n1,2,3\n");
  EXPECT_THAT(document_only().err, HasSubstr("two columns are named \"x\""));
}

}  // namespace
}  // namespace treadle
