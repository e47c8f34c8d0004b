#include <treadle/host/compare/run_settings.h>

#include <gmock/gmock.h>

namespace treadle::compare {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// A finished search that began with the rate, and whose best trial had another one.
RunRecord search(double rate, double best_rate) {
  RunRecord run;
  run.document = {
      {"name", "any"},
      {"model", {{"use", "mlp"}, {"hidden", {8}}}},
      {"optimizer", {{"use", "sgd"}, {"learning_rate", rate}, {"momentum", 0.5}}},
      {"search",
       {{"tuner", {{"use", "tpe"}, {"seed", 1}}},
        {"objective", "val_loss"},
        {"trials", 8},
        {"space",
         {{"optimizer.learning_rate", {{"log_uniform", {0.001, 0.1}}}},
          {"model.hidden.{0..1}", {{"int", {1, 8}}}},
          {"optimizer.momentum", {{"uniform", {0, 1}}, {"when", {{"optimizer", {"sgd"}}}}}}}}}}};
  run.best = run.document;
  run.best.erase("search");
  run.best["optimizer"]["learning_rate"] = best_rate;
  return run;
}

Json differing(const std::vector<Settings>& all) {
  const DifferingSettings found = differing_settings(all);
  Json table = Json::object();
  for (std::size_t key = 0; key < found.keys.size(); ++key) {
    for (const std::vector<Json>& run : found.values)
      table[found.keys[key]].push_back(run[key]);
  }
  return table;
}

TEST(RunSettings, ASearchHasThoseOfItsBestTrial) {
  EXPECT_EQ(
      differing({trained_settings_of(search(0.01, 0.02)), trained_settings_of(search(0.05, 0.07)),
                 trained_settings_of(search(0.01, 0.02))}),
      Json({{"optimizer.learning_rate", {0.02, 0.07, 0.02}}}));
}

TEST(RunSettings, ASearchWithoutAResultHasNoneOfTheValuesThatItTries) {
  RunRecord unfinished = search(0.01, 0.02);
  unfinished.best = Json();

  const Settings settings = trained_settings_of(unfinished);

  EXPECT_TRUE(settings.at("optimizer.learning_rate").is_null());
  EXPECT_TRUE(settings.at("optimizer.momentum").is_null());
  EXPECT_EQ(settings.at("model.hidden"), Json::array({nullptr})) << "of two indices it has one";
  EXPECT_EQ(settings.at("search.trials"), 8);
}

// A value that every trial replaces changes nothing; one with a condition may be that of a trial.
TEST(RunSettings, SearchesAreTheSameMethodWhateverTrialsReplace) {
  RunRecord other = search(0.05, 0.07);
  EXPECT_EQ(settings_of(search(0.01, 0.02)), settings_of(other));

  other.document["optimizer"]["momentum"] = 0.25;
  EXPECT_EQ(differing({settings_of(search(0.01, 0.02)), settings_of(other)}),
            Json({{"optimizer.momentum", {0.5, 0.25}}}));
}

TEST(RunSettings, OfASearchNextToARunWithoutOneOnlyWhatMattersDiffers) {
  RunRecord plain = search(0.01, 0.02);
  plain.best = Json();
  plain.document.erase("search");

  EXPECT_EQ(differing({trained_settings_of(plain), trained_settings_of(search(0.01, 0.02))}),
            Json({{"optimizer.learning_rate", {0.01, 0.02}},
                  {"search.objective", {nullptr, "val_loss"}},
                  {"search.trials", {nullptr, 8}},
                  {"search.tuner.use", {nullptr, "tpe"}}}));
}

TEST(RunSettings, ListsOfAsManyComponentsAreComparedElementByElement) {
  const auto flow = [](const std::vector<Json>& steps) {
    RunRecord run;
    run.document["model"]["flow"] = steps;
    return settings_of(run);
  };
  const Json dense{{"use", "dense"}, {"units", 8}};
  const Json wide{{"use", "dense"}, {"units", 16}};
  const Json with_body{{"use", "residual"}, {"body", {dense, wide}}};
  const Json with_other_body{{"use", "residual"}, {"body", {dense, dense}}};

  EXPECT_EQ(differing({flow({dense, "relu"}), flow({wide, "relu"})}),
            Json({{"model.flow.0.units", {8, 16}}}));
  EXPECT_EQ(differing({flow({with_body}), flow({with_other_body})}),
            Json({{"model.flow.0.body.1.units", {16, 8}}}));
  EXPECT_EQ(differing({flow({dense}), flow({dense, "relu"})}),
            Json({{"model.flow", {Json::array({dense}), Json::array({dense, "relu"})}}}));
  EXPECT_EQ(differing({flow({1, 2}), flow({1, 3})}), Json({{"model.flow", {{1, 2}, {1, 3}}}}));
}

}  // namespace
}  // namespace treadle::compare
