// Balanced class weights in whole runs: each training counts its own training rows, and the model
// keeps what it was trained with.
#include <gmock/gmock.h>

#include <treadle/base/error.h>
#include <treadle/host/run/predictor.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using testing::bits_of;
using testing::history_of;
using testing::Impatient;
using testing::watching_runtime;
using testing::Workspace;
namespace fs = std::filesystem;

/// 40 rows; every fifth of the first half is a "yes", every second of the second half.
void write_answers(const fs::path& path, int first = 0, int last = 40) {
  std::ofstream file(path);
  file << "x,z,answer\n";
  for (int row = first; row < last; ++row) {
    const bool is_yes = row % (row < 20 ? 5 : 2) == 0;
    file << 0.1 * row << ',' << (is_yes ? 1.5 : -0.5) * (row % 3) << ',' << (is_yes ? "yes" : "no")
         << '\n';
  }
}

class BalancedRuns : public ::testing::Test {
 protected:
  nlohmann::json answers(const nlohmann::json& class_weights, const nlohmann::json& validation) {
    const fs::path data = workspace_.folder() / "answers.csv";
    write_answers(data);
    auto document = nlohmann::json::parse(R"({
      "treadle": 1, "name": "answers", "seed": 3,
      "data": {"use": "csv", "target": "answer"},
      "model": {"use": "mlp", "hidden": [4]},
      "loss": {"use": "cross_entropy"},
      "schedule": "watched",
      "training": {"use": "standard", "epochs": 4, "batch_size": 5, "checkpoint": {"every": "2st"}},
      "resources": {"workers": 2}})");
    document["data"]["path"] = data.string();
    if (!class_weights.is_null())
      document["loss"]["class_weights"] = class_weights;
    document["validation"] = validation;
    return document;
  }

  fs::path run(const nlohmann::json& document) {
    return run_workflow(runtime_, runtime_.resolve(document), workspace_.options()).folder;
  }

  const Runtime runtime_ = watching_runtime();
  const Workspace workspace_;
};

const nlohmann::json kLastRowsValidate = {
    {"use", "hold_out"}, {"strategy", "chronological"}, {"rows", 10}};

TEST_F(BalancedRuns, CountTheTrainingRows) {
  // 30 rows train: 4 + 5 are a yes.
  const std::vector<double> by_hand{30 / (2.0 * 21), 30 / (2.0 * 9)};
  const nlohmann::json by_name{{"no", by_hand[0]}, {"yes", by_hand[1]}};

  const std::string balanced = bits_of(run(answers("balanced", kLastRowsValidate)));

  EXPECT_EQ(balanced, bits_of(run(answers(by_hand, kLastRowsValidate))));
  EXPECT_EQ(balanced, bits_of(run(answers(by_name, kLastRowsValidate))));
  EXPECT_NE(balanced, bits_of(run(answers(nullptr, kLastRowsValidate))));
}

/// The lines of a run's history that belong to a training.
std::string lines_of_training(const fs::path& run, const std::string& name) {
  std::istringstream text(history_of(run));
  std::string lines;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with(name + ","))
      lines += line + "\n";
  }
  return lines;
}

TEST_F(BalancedRuns, CountTheRowsOfEachFold) {
  const nlohmann::json folds = {
      {"use", "k_fold"}, {"folds", 2}, {"shuffle", false}, {"stratify", false}, {"refit", false}};
  const fs::path balanced = run(answers("balanced", folds));

  // The first fold trains on the second half, of which 10 of 20 are a yes; the second on the first.
  EXPECT_EQ(lines_of_training(balanced, "fold-1"),
            lines_of_training(run(answers({1, 1}, folds)), "fold-1"));
  EXPECT_EQ(lines_of_training(balanced, "fold-2"),
            lines_of_training(run(answers({20 / 32.0, 20 / 8.0}, folds)), "fold-2"));
  EXPECT_NE(lines_of_training(balanced, "fold-1"), "");
}

TEST_F(BalancedRuns, AreTheSameAfterAStop) {
  const nlohmann::json document = answers("balanced", kLastRowsValidate);
  const std::string expected = bits_of(run(document));
  const Workspace stopped;
  RunOptions options = stopped.options();
  {
    const Impatient impatient(runtime_, 9);
    options.stop = impatient.token();
    EXPECT_THROW(run_workflow(runtime_, runtime_.resolve(document), options), Interrupted);
  }
  const fs::path run = fs::directory_iterator(options.output)->path();

  EXPECT_EQ(bits_of(resume_run(runtime_, run).folder), expected);
}

TEST_F(BalancedRuns, StayWithTheModel) {
  const fs::path folder = run(answers("balanced", kLastRowsValidate));
  const fs::path exported = workspace_.folder() / "model.safetensors";
  export_model(folder, exported);
  const fs::path evaluated = workspace_.folder() / "evaluated.csv";
  write_answers(evaluated, 30, 40);  // balanced in itself, so weights counted here would be 1 each
  const auto result = nlohmann::json::parse(testing::read_file(folder / "result.json"));

  for (const fs::path& model : {folder, exported}) {
    EXPECT_NEAR(Predictor::load(runtime_, model).evaluate_file(evaluated).loss,
                result.at("validation").at("loss").get<double>(), 1e-6)
        << model;
  }
}

TEST_F(BalancedRuns, CountInLossesAndNotInMetrics) {
  const auto validation = [&](const nlohmann::json& class_weights) {
    auto document = answers(class_weights, kLastRowsValidate);
    document["metrics"] = nlohmann::json::array({"log_loss", "accuracy"});
    document["optimizer"] = {{"use", "sgd"}, {"learning_rate", 1e-12}};  // the same model each time
    return nlohmann::json::parse(testing::read_file(run(document) / "result.json"))
        .at("validation");
  };

  const nlohmann::json weighted = validation({0.01, 100});
  const nlohmann::json plain = validation({1, 1});

  EXPECT_EQ(weighted.at("metrics"), plain.at("metrics"));
  EXPECT_GT(std::abs(weighted.at("loss").get<double>() - plain.at("loss").get<double>()), 1e-3);
}

}  // namespace
}  // namespace treadle
