// The report of real runs: it draws the tables that the plugins of metrics write.
#include <algorithm>
#include <set>

#include <gmock/gmock.h>

#include "command_fixture.h"
#include "npy_bytes.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

class Reports : public CommandFixture {
 protected:
  /// Runs a document of which `more` gives what matters; small, fast and quiet.
  void given_run(const json& more) {
    json document{{"treadle", 1},
                  {"name", "tried"},
                  {"data", {{"use", "friedman1"}, {"rows", 120}}},
                  {"transforms", {{{"use", "standardize"}, {"target", true}}}},
                  {"model", {{"use", "mlp"}, {"hidden", {4}}}},
                  {"training", {{"epochs", 2}}}};
    document.update(more);
    write("tried.json", document.dump(2));
    const Finished done = run({"run", "tried.json", "--quiet"});
    ASSERT_EQ(done.code, 0) << done.err;
  }

  std::string report() const { return read(only_run() / "report.html"); }
  json result() const { return json::parse(read(only_run() / "result.json")); }

  json table(const std::string& name) const {
    const json run = result();
    for (const json& stored : run.at("tables")) {
      if (stored.at("name") == name)
        return stored;
    }
    ADD_FAILURE() << "the result has no table " << name;
    return {};
  }

  /// The document that the page shows.
  json document() const {
    const std::string page = report();
    const std::size_t begin = page.find('>', page.find("id=\"report-document\"")) + 1;
    return json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  }

  /// The first member of this name anywhere in a value; null without any.
  static json find(const json& value, const std::string& name, const json& wanted) {
    if (value.is_object() && value.value(name, json()) == wanted)
      return value;
    for (const json& part : value) {
      if (part.is_structured()) {
        if (json found = find(part, name, wanted); !found.is_null())
          return found;
      }
    }
    return {};
  }
  json chart(const std::string& kind) const { return find(document(), "chart", kind); }
  json card(const std::string& title) const { return find(document(), "title", title); }
};

TEST_F(Reports, DrawActualAgainstPredictedForARegression) {
  given_run(json::object());

  EXPECT_FALSE(chart("scatter").is_null());
  EXPECT_FALSE(chart("histogram").is_null());
  EXPECT_TRUE(card("residual_sample").is_null());
  EXPECT_EQ(table("residual_histogram").at("column_labels"), json({"from", "to", "count"}));
}

TEST_F(Reports, ShowManyOutputsInOneSectionAndKeepTheResultSmall) {
  constexpr int kRows = 600;
  constexpr int kOutputs = 24;
  std::vector<float> inputs;
  std::vector<float> targets;
  for (int row = 0; row < kRows; ++row) {
    inputs.push_back(static_cast<float>(row % 17));
    for (int i = 0; i < kOutputs; ++i)
      targets.push_back(0.125F * static_cast<float>((row % 17) * i + row % 5));
  }
  write("inputs.npy", arrays::npy_of("(600, 1)", inputs));
  write("targets.npy", arrays::npy_of("(600, 24)", targets));
  given_run({{"data", {{"use", "npy"}, {"inputs", "inputs.npy"}, {"target", "targets.npy"}}},
             {"validation", {{"use", "k_fold"}, {"folds", 3}}}});

  for (const char* kind : {"scatter", "histogram"}) {
    const json tables = chart(kind).at("tables");
    std::set<int> outputs;
    for (const json& row : tables.at(0).at("values"))
      outputs.insert(row.at(0).get<int>());
    EXPECT_EQ(tables.size(), 1U);
    EXPECT_EQ(outputs.size(), 24U) << kind;
  }
  EXPECT_FALSE(card("Error by output").is_null());
  EXPECT_LT(report().size(), 600'000U);  // half of it is the script that draws
  EXPECT_LT(fs::file_size(only_run() / "result.json"), 40'000U);
  const json stored = table("residual_sample");
  EXPECT_EQ(stored.at("outputs"), 24);
  EXPECT_FALSE(stored.contains("values"));
  const std::string rows = read(only_run() / stored.at("file").get<std::string>());
  EXPECT_THAT(rows, testing::StartsWith("output,actual,predicted\n0,"));
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), stored.at("rows").get<int>() + 1);
}

TEST_F(Reports, SayWhichWeightsAreHeldInWhatUnitsTheLossIsAndWhereTimeWent) {
  given_run({{"metrics", {"rmse", "mae", "r2"}},
             {"training", {{"epochs", 4}, {"restore_best_weights", {{"monitor", "r2"}}}}},
             {"validation", {{"use", "k_fold"}, {"folds", 2}}}});

  const json run = result();

  EXPECT_EQ(run.at("weights"), json({{"epoch", run.at("total_epochs")}, {"chosen", "last"}}));
  EXPECT_EQ(run.at("fold_results")[0].at("weights").at("by"), "r2");
  EXPECT_EQ(run.at("transformed_target"), true);
  EXPECT_EQ(run.at("metric_list"), json::parse(R"([{"name": "rmse", "better": "lower"},
    {"name": "mae", "better": "lower"}, {"name": "r2", "better": "higher"}])"));
  EXPECT_THAT(report(), HasSubstr("weights of the last epoch"));
  EXPECT_THAT(report(), HasSubstr("best weights by r2"));
  EXPECT_FALSE(find(document(), "label", "wall time").is_null());
}

TEST_F(Reports, OfASearchDrawItsTrialsApartFromTheRunsOwnFits) {
  constexpr const char* kRate = "optimizer.learning_rate";
  given_run({{"optimizer", {{"use", "sgd"}, {"learning_rate", 0.01}}},
             {"search",
              {{"tuner", {{"use", "random"}}},
               {"trials", 3},
               {"space", {{kRate, {{"log_uniform", {1e-4, 1e-1}}}}}}}}});

  const json drawn = document();
  const json trials = result().at("search").at("trials");

  ASSERT_EQ(drawn.at("epochs").at("fits").size(), 1U);
  EXPECT_EQ(drawn.at("epochs").at("fits")[0].at("name"), "final");
  ASSERT_EQ(drawn.at("search").at("trials").size(), 3U);
  EXPECT_EQ(drawn.at("search").at("paths"), json({kRate}));
  for (std::size_t i = 0; i < trials.size(); ++i)
    EXPECT_EQ(drawn.at("search").at("trials")[i].at("params")[0], trials[i].at("params").at(kRate));
  EXPECT_FALSE(find(drawn, "block", "search").is_null());
}

TEST_F(Reports, EveryTableIsInTheResultOnce) {
  given_run({{"data", {{"use", "moons"}, {"rows", 80}}},
             {"transforms", json::array()},
             {"metrics", {"accuracy", "confusion_matrix"}}});

  const json run = result();

  std::vector<std::string> names;
  for (const json& table : run.at("tables"))
    names.push_back(table.at("name"));
  EXPECT_THAT(names, ElementsAre("confusion_matrix", "curves", "reliability", "score_histogram",
                                 "thresholds"));
  EXPECT_FALSE(run.at("validation").contains("tables"));
}

TEST_F(Reports, ALossInTheDatasUnitsIsNotLabelled) {
  given_run({{"transforms", {"standardize"}}});

  EXPECT_EQ(result().at("transformed_target"), false);
}

TEST_F(Reports, DescribeTheDataWithTypesMissingValuesAndClasses) {
  write("few.csv", "size,colour,kind\n1,red,a\n,blue,a\n3,red,b\n4,,a\n5,red,a\n6,red,b\n");
  given_run({{"data",
              {{"use", "csv"},
               {"path", "few.csv"},
               {"target", "kind"},
               {"categorical", {"colour"}},
               {"missing", "nan"}}},
             {"transforms", {"impute", "one_hot"}},
             {"validation", {{"use", "k_fold"}, {"folds", 2}}}});

  const json data = result().at("data");

  EXPECT_EQ(data.at("rows"), 6);
  EXPECT_EQ(data.at("targets").at(0).at("classes"),
            json::parse(R"([{"name": "a", "rows": 4}, {"name": "b", "rows": 2}])"));
  const json columns = data.at("inputs")[0].at("columns");
  EXPECT_EQ(columns[0], json({{"name", "size"}, {"type", "number"}, {"missing", 1}}));
  const json category = data.at("inputs")[1].at("columns")[0];
  EXPECT_EQ(category.at("type"), "category");
  EXPECT_EQ(category.at("missing"), 1);
  EXPECT_FALSE(find(document(), "block", "data").is_null());
}

TEST_F(Reports, ShowTheNodesOfAFlow) {
  given_run({{"model",
              {{"use", "flow"},
               {"flow",
                {{{"use", "dense"}, {"out_features", 8}, {"name", "widened"}}, "relu", "head"}}}}});

  EXPECT_THAT(report(), HasSubstr("[\"widened\",\"dense\","));
  const bool has_graphviz = run_program({"sh", "-c", "command -v dot"}).code == 0;
  EXPECT_EQ(find(document(), "block", "picture").is_null(), !has_graphviz);
}

}  // namespace
}  // namespace treadle
