// What a run, or a dry run, tells its author before anything has been trained for long.
#include <fstream>
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include <treadle/base/error.h>
#include <treadle/testing/support/expect_problem.h>

#include "watched_runs.h"

namespace treadle::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ToldBeforeTraining : public ::testing::Test {
 protected:
  /// Four series of twenty days each; day 6 of each is missing where `has_hole`.
  std::string series(bool has_hole) const {
    const fs::path path = workspace_.folder() / "series.csv";
    std::ofstream out(path);
    out << "a,store,day,part,y\n";
    for (int store = 0; store < 4; ++store) {
      for (int day = 1; day <= 20; ++day) {
        if (has_hole && day == 6)
          continue;
        out << (store * 7 + day * 3) % 11 << ",s" << store << ",2024-01-" << (day < 10 ? "0" : "")
            << day << ',' << (day % 4 == 0 ? "val" : "train") << ',' << (day * store) % 5 << ".5\n";
      }
    }
    return path.string();
  }
  json document(bool has_hole = false) const {
    return {
        {"treadle", 1},
        {"data", {{"use", "csv"}, {"path", series(has_hole)}, {"columns", {"a"}}, {"target", "y"}}},
        {"model", "linear"},
        {"resources", {{"workers", 1}}},
        {"training", {{"epochs", 1}}}};
  }
  fs::path run(const json& document) const {
    return run_workflow(runtime_, runtime_.resolve(document), workspace_.options()).folder;
  }
  std::string told(const json& document) const { return read_file(run(document) / "events.jsonl"); }

  const Runtime runtime_ = watching_runtime();
  const Workspace workspace_;
};

TEST_F(ToldBeforeTraining, ImagesThatAreLeftOutAreCounted) {
  if (runtime_.schemas().find("data", "images").schema == nullptr)
    GTEST_SKIP() << "plugins/data-images was not built: it needs libjpeg, libpng and libwebp";
  const fs::path folder = workspace_.folder() / "shapes";
  fs::copy(source_folder() / "examples/data/shapes", folder, fs::copy_options::recursive);
  std::ofstream(folder / "circle/broken.png") << "no image";
  const json images = {{"treadle", 1},
                       {"data", {{"use", "images"}, {"path", folder.string()}, {"broken", "skip"}}},
                       {"model", {{"use", "flow"}, {"flow", {"flatten", "head"}}}},
                       {"resources", {{"workers", 1}}},
                       {"training", {{"epochs", 1}}}};
  const auto counts = HasSubstr("data: 1 of 13 images cannot be decoded and are left out");

  EXPECT_THAT(told(images), counts);
  EXPECT_THAT(dry_run(runtime_, runtime_.resolve(images)).data.dump(), counts);
}

TEST_F(ToldBeforeTraining, ASplitThatNobodyChoseNotesTheGroupsAndTimesItMixes) {
  json by_default = document();
  by_default["data"].update({{"group", "store"}, {"time", "day"}});
  json chosen = by_default;
  json by_time = by_default;
  json by_group = by_default;
  chosen["validation"] = {{"use", "hold_out"}, {"strategy", "random"}};
  by_time["validation"] = {{"use", "hold_out"}, {"strategy", "chronological"}};
  by_group["validation"] = {{"use", "group_k_fold"}, {"folds", 2}};
  const auto mixes = AllOf(HasSubstr("both train and validate"), HasSubstr("later than rows"));
  const auto is_silent =
      AllOf(Not(HasSubstr("both train and validate")), Not(HasSubstr("later than rows")));

  EXPECT_THAT(told(by_default), mixes);
  EXPECT_THAT(dry_run(runtime_, runtime_.resolve(by_default)).data.dump(), mixes);
  EXPECT_THAT(told(document()), is_silent) << "the data names neither";
  EXPECT_THAT(told(chosen), is_silent);
  EXPECT_THAT(told(by_time), is_silent);
  EXPECT_THAT(told(by_group), is_silent);
}

TEST_F(ToldBeforeTraining, SamplesOverAHoleInTimeAreNoted) {
  const auto windows = [&](bool has_hole, int horizon) {
    json one = document(has_hole);
    one["data"].update({{"group", "store"}, {"time", "day"}});
    one["sequence"] = {{"use", "windows"}, {"lookback", 2}, {"horizon", horizon}};
    one["model"] = {{"use", "flow"}, {"flow", {"flatten", "head"}}};
    one["validation"] = {{"use", "hold_out"}, {"strategy", "chronological"}};
    return told(one);
  };

  EXPECT_THAT(windows(true, 1),
              AllOf(HasSubstr("samples go on over 4 holes in time, the first between 2024-01-05"),
                    HasSubstr("and 2024-01-07")));
  EXPECT_THAT(windows(false, 1), Not(HasSubstr("holes in time")));
}

TEST_F(ToldBeforeTraining, TheColumnOfAPredefinedSplitIsNoInput) {
  json predefined = document();
  predefined["data"].erase("columns");
  predefined["data"].update({{"group", "store"}, {"time", "day"}});
  predefined["validation"] = {{"use", "predefined"}, {"parts", "part"}};

  const json result = json::parse(read_file(run(predefined) / "result.json"));

  const json& columns = result.at("data").at("inputs").at(0).at("columns");
  ASSERT_EQ(columns.size(), 1U);
  EXPECT_EQ(columns.at(0).at("name"), "a");
}

// The first fold's batches are 29 rows; all 30 rows leave one over, which no batch norm takes.
TEST_F(ToldBeforeTraining, ADryRunTriesTheShortLastBatchOfTheRefit) {
  json document = {{"treadle", 1},
                   {"data", {{"use", "moons"}, {"rows", 30}}},
                   {"resources", {{"workers", 1}}},
                   {"model",
                    {{"use", "flow"},
                     {"flow", {{{"use", "dense"}, {"out_features", 4}}, "batch_norm", "head"}}}},
                   {"training", {{"epochs", 1}, {"batch_size", 29}}},
                   {"validation", {{"use", "k_fold"}, {"folds", 3}}}};

  EXPECT_THROW(dry_run(runtime_, runtime_.resolve(document)), TrainingError);
  document["training"]["batch_size"] = 15;
  EXPECT_NO_THROW(dry_run(runtime_, runtime_.resolve(document)));
}

TEST_F(ToldBeforeTraining, OneFileIsOneSourceUnderOtherColumnsAndPrecisions) {
  const auto hashes = [&](const json& document) {
    const json environment = json::parse(read_file(run(document) / "environment.json"));
    return std::pair(environment.at("data_hash"), environment.at("source_hash"));
  };
  const json plain = document();
  json wider = plain;
  json finer = plain;
  wider["data"]["categorical"] = {"store"};
  wider["data"]["columns"] = {"a", "store"};
  wider["transforms"] = {"one_hot"};
  finer["precision"] = "float64";
  const auto [data, source] = hashes(plain);

  EXPECT_EQ(hashes(finer), std::pair(data, source)) << "a precision rounds, the data does not";
  EXPECT_NE(hashes(wider).first, data);
  EXPECT_EQ(hashes(wider).second, source);
  EXPECT_NE(hashes(document(/*has_hole=*/true)).second, source);
}

/// Data that nobody has opened: reading it would be an error of another kind.
TEST_F(ToldBeforeTraining, WhatNeedsNoDataIsFoundWithoutIt) {
  json right = document();
  right["data"]["path"] = (workspace_.folder() / "nowhere.csv").string();
  EXPECT_THAT(check_document(runtime_, runtime_.resolve(right)), ::testing::IsEmpty());
  json once = right;
  once["training"] = "prequential";
  once["schedule"] = {{"use", "multi_step"}, {"milestones", {"27%"}}};
  once.erase("validation");
  EXPECT_NO_THROW(check_document(runtime_, runtime_.resolve(once))) << "it ends with its data";
  const json branches = json::array({json::array({"relu"}), json::array({"tanh"})});
  const auto flow = [&](const json& merger) {
    return json{
        {"use", "flow"},
        {"flow",
         {{{"use", "split"}, {"branches", branches}}, {{"use", "merge"}, {"with", merger}}}}};
  };
  struct Mistake {
    const char* pointer;  // of what is wrong
    const char* slot;     // what is put there
    json value;
    std::initializer_list<std::string_view> words;
  };
  const Mistake mistakes[] = {
      {"/model/flow/1/with",
       "/model",
       flow({{"use", "grid_cat"}, {"grid", {2, 2, 1}}, {"positions", {{0, 1, 0}, {0, 1, 0}}}}),
       {"branches 0 and 1", "[0,1,0]"}},
      {"/model/flow/1/with",
       "/model",
       flow({{"use", "grid_cat"}, {"grid", {2, 2, 1}}, {"positions", {{0, 1, 0}, {0, 2, 0}}}}),
       {"[0,2,0]", "outside of the grid"}},
      {"/model/flow/0/builder/num_heads",
       "/model",
       json::parse(R"({"use": "flow", "flow": [{"use": "graph", "builder": {"use": "hive",
           "rows": 1, "columns": 1, "cells": "attention", "width": 6, "num_heads": 4}}]})"),
       {"must divide", "6", "4"}},
      {"/schedule", "/training/epochs", "unlimited", {"stretched", "training.max_steps"}},
      {"/training/callbacks/1", "/training/callbacks", {"ema", "swa"}, {"\"ema\" and \"swa\""}},
      {"/training/ema",
       "/training",
       {{"ema", {{"decay", 0.9}}}, {"callbacks", {"swa"}}},
       {"\"swa\" and \"ema\"", "leave one"}},
  };
  for (const Mistake& mistake : mistakes) {
    json wrong = right;
    wrong["schedule"] = "cosine";
    wrong[json::json_pointer(mistake.slot)] = mistake.value;
    expect_problem([&] { check_document(runtime_, runtime_.resolve(wrong)); }, ErrorKind::kDocument,
                   mistake.pointer, mistake.words);
  }
}

TEST_F(ToldBeforeTraining, HeadsThatDoNotDivideAWidthAreFoundWithoutData) {
  const std::pair<const char*, json> builders[] = {
      {"vit", {{"patch_size", 4}, {"width", 6}}},
      {"ft_transformer", {{"width", 6}}},
      {"saint", {{"width", 6}}},
      {"gpt", {{"hidden_size", 6}}},
      {"bert", {{"hidden_size", 6}}},
      {"patch_tst", {{"d_model", 6}}},
      {"temporal_fusion_transformer", {{"hidden_size", 6}}}};
  for (const auto& [name, sizes] : builders) {
    json builder = sizes;
    builder.update({{"use", name}, {"num_heads", 4}});
    json wrong = document();
    wrong["data"]["path"] = (workspace_.folder() / "nowhere.csv").string();
    wrong["model"] = {{"use", "flow"}, {"flow", {{{"use", "graph"}, {"builder", builder}}}}};
    expect_problem([&] { check_document(runtime_, runtime_.resolve(wrong)); }, ErrorKind::kDocument,
                   "/model/flow/0/builder/num_heads", {"divide", "6"});
  }
}

TEST_F(ToldBeforeTraining, AHandfulOfRowsThatValidateIsNoted) {
  const auto told_with = [&](double fraction) {
    json few = document();
    few["validation"] = {{"use", "hold_out"}, {"fraction", fraction}};
    return told(few);
  };
  EXPECT_THAT(told_with(0.02), HasSubstr("rows validate, by which metrics differ at random"));
  EXPECT_THAT(told_with(0.2), Not(HasSubstr("rows validate")));
}

TEST_F(ToldBeforeTraining, PatienceEndsASearchAndAPopulationThatReplacesNobodyIsNoted) {
  json search = document();
  search["search"] = {{"trials", 40},
                      {"patience", 3},
                      {"tuner", "random"},
                      {"space", {{"optimizer.learning_rate", {{"log_uniform", {1e-4, 1e-1}}}}}}};
  const json result = json::parse(read_file(run(search) / "result.json")).at("search");
  EXPECT_EQ(result.at("ended").at("reason"), "patience");
  const std::size_t trials = result.at("trials").size();
  EXPECT_GE(trials, 4U);
  EXPECT_LT(trials, 40U);

  search["search"] = {{"trials", 4},
                      {"pruner", {{"use", "population_based"}, {"population", 4}}},
                      {"space", search["search"]["space"]}};
  EXPECT_THAT(notes_on_search(runtime_, runtime_.resolve(search)),
              ::testing::Contains(AllOf(HasSubstr("\"population_based\" changes nothing"),
                                        HasSubstr("4 at most"))));
}

}  // namespace
}  // namespace treadle::testing
