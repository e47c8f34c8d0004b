// `verify` and `runs bundle`: a run that is trained again has the same bits, or says what is not.
#include <gmock/gmock.h>

#include <fstream>

#include "command_fixture.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class Verify : public CommandFixture {
 protected:
  /// A run of two folds, with a callback whose state counts.
  std::string trained() {
    std::string rows = "a,b,y\n";
    for (int row = 0; row < 90; ++row) {
      rows += std::to_string(row * 7 % 13) + "." + std::to_string(row % 10) + "," +
              std::to_string(row * 5 % 11) + "," + (row % 3 == 0 ? "red" : "blue") + "\n";
    }
    write("rows.csv", rows);
    write("document.json", json{{"treadle", 1},
                                {"name", "again"},
                                {"data", {{"use", "csv"}, {"path", "rows.csv"}, {"target", "y"}}},
                                {"transforms", {"standardize"}},
                                {"model", {{"use", "mlp"}, {"hidden", {8}}, {"dropout", 0.2}}},
                                {"validation", {{"use", "k_fold"}, {"folds", 2}}},
                                {"training",
                                 {{"epochs", 12},
                                  {"batch_size", 8},
                                  {"checkpoint", {{"every", "5st"}}},
                                  {"early_stopping", {{"patience", "4ep"}}}}}}
                               .dump());
    const Finished done = run({"run", "document.json", "--json"});
    EXPECT_EQ(done.code, 0) << done.err;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder() / "runs"))
      return "runs/" + entry.path().filename().string();
    return "";
  }
};

TEST_F(Verify, FindsTheSameBitsWhereverTheTrainingIsKilled) {
  const std::string run = trained();

  for (int round = 0; round < 2; ++round) {
    const Finished done = this->run({"verify", run, "--resume", "3", "--json"});
    ASSERT_EQ(done.code, 0) << done.out << done.err;
    EXPECT_EQ(done.json().at("differences"), json::array());
    EXPECT_EQ(done.json().at("conditions"), json::array());
    EXPECT_LE(done.json().at("killed_after_seconds").size(), 3U);
  }
  const Finished text = this->run({"verify", run, "-o", "kept"});
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, AllOf(HasSubstr("the same weights, history and result"),
                              HasSubstr("kept in kept/again-")));
  const Finished other = this->run({"verify", run, "-o", "kept", "--set", "seed=5"});
  EXPECT_EQ(other.code, 6) << "the run that was kept before was taken for the new one";
}

TEST_F(Verify, NamesTheFirstDifferenceOfEachKindAndOtherConditions) {
  const std::string run = trained();
  const fs::path environment = folder() / run / "environment.json";
  json changed = json::parse(std::ifstream(environment));
  changed["libtorch"] = "9.9.9";
  write(run + "/environment.json", changed.dump());

  const Finished done = this->run({"verify", run, "--set", "seed=5", "--json"});

  EXPECT_EQ(done.code, 6);
  const json differences = done.json().at("differences");
  ASSERT_EQ(differences.size(), 3U);
  EXPECT_THAT(differences[0].get<std::string>(), HasSubstr("history.csv, line 2"));
  EXPECT_THAT(differences[1].get<std::string>(), HasSubstr("model.safetensors"));
  EXPECT_THAT(differences[2].get<std::string>(), HasSubstr("result.json: /"));
  ASSERT_EQ(done.json().at("conditions").size(), 1U);
  EXPECT_THAT(done.json().at("conditions")[0].get<std::string>(),
              AllOf(HasSubstr("libtorch"), HasSubstr("9.9.9")));
}

TEST_F(Verify, ABundleIsVerifiedWithDataThatLiesElsewhere) {
  const std::string run = trained();
  ASSERT_EQ(this->run({"runs", "bundle", run, "-o", "again.json"}).code, 0);
  fs::remove_all(folder() / run);
  fs::create_directories(folder() / "elsewhere");
  fs::rename(folder() / "rows.csv", folder() / "elsewhere/rows.csv");

  const Finished without = this->run({"verify", "again.json"});
  const Finished with =
      this->run({"verify", "again.json", "--set", "data.path=elsewhere/rows.csv", "--json"});

  EXPECT_EQ(without.code, 5);
  EXPECT_THAT(without.err, HasSubstr("rows.csv"));
  EXPECT_EQ(with.code, 0) << with.out << with.err;

  std::ofstream(folder() / "elsewhere/rows.csv", std::ios::app) << "1,2,red\n";
  const Finished other =
      this->run({"verify", "again.json", "--set", "data.path=elsewhere/rows.csv"});
  EXPECT_EQ(other.code, 5);
  EXPECT_THAT(other.err, AllOf(HasSubstr("the data is not that of the run"), HasSubstr("hash")));
}

TEST_F(Verify, RefusesARunThatWentOnFromAnother) {
  const std::string run = trained();
  ASSERT_EQ(this->run({"run", "--from", run, "--set", "training.epochs=14", "-o", "further"}).code,
            0);
  const fs::path further = fs::directory_iterator(folder() / "further")->path();

  const Finished done = this->run({"verify", further.string()});

  EXPECT_EQ(done.code, 2);
  EXPECT_THAT(done.err, AllOf(HasSubstr("went on from"), HasSubstr(run)));
}

TEST_F(Verify, RefusesWhatIsNoFinishedRun) {
  fs::create_directories(folder() / "nothing");
  write("text.json", "{\"a\": 1}");
  write("damaged.json", "{\"treadle_bundle\": 1, \"document\": []}");

  write("stranger.json", json{{"treadle_bundle", 1},
                              {"document", json::object()},
                              {"environment", {{"from", 7}}},
                              {"searched", false},
                              {"seconds", 1},
                              {"sha256", json::object()},
                              {"history", json::array()},
                              {"result", json::object()}}
                             .dump());

  for (const char* given : {"nothing", "text.json", "absent", "damaged.json", "stranger.json"}) {
    const Finished done = run({"verify", given});
    EXPECT_EQ(done.code, 7) << given;
    EXPECT_THAT(done.err, HasSubstr(given));
  }
  EXPECT_EQ(run({"verify", "nothing", "--resume", "0"}).code, 2);
  EXPECT_EQ(run({"runs", "bundle", "nothing", "-o", "x.json"}).code, 7);
}

}  // namespace
}  // namespace treadle
