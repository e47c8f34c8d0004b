// Frequent mistakes in data, documents and plugins, each with its message. Other tests compare the
// code, the place and the key words of a message (treadle/testing/support/expect_problem.h); the
// sentences here stand whole, as golden ones.
#include <algorithm>

#include <gmock/gmock.h>

#include "command_fixture.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

class BadInput : public CommandFixture {
 protected:
  BadInput() { given_document(3); }

  /// What a run says when points.csv has this content; expects the exit code of bad data.
  std::string verdict_on(std::string_view table, const std::vector<std::string>& changes = {}) {
    write("points.csv", table);
    return verdict(5, changes);
  }

  /// What a run says, without its name and the line's end; expects one line and the exit code.
  std::string verdict(int code, const std::vector<std::string>& changes = {}) {
    std::vector<std::string> words{"run", "points.json", "--quiet"};
    for (const std::string& change : changes) {
      words.push_back("--set");
      words.push_back(change);
    }
    const Finished failed = run(words);
    EXPECT_EQ(failed.code, code) << failed.err;
    EXPECT_EQ(failed.out, "");
    EXPECT_EQ(std::count(failed.err.begin(), failed.err.end(), '\n'), 1) << failed.err;
    const std::string start = "workflow-runner: ";
    EXPECT_TRUE(failed.err.starts_with(start)) << failed.err;
    return failed.err.substr(start.size(), failed.err.size() - start.size() - 1);
  }

  /// A table and a linear model that a learning rate above 1 drives away, epoch by epoch.
  void given_divergence() {
    std::string table = "x,y,t\n";
    for (int i = 0; i < 60; ++i) {
      table += std::to_string(i * 7 % 11) + "," + std::to_string(i * 5 % 13) + "," +
               std::to_string(i % 9) + "\n";
    }
    write("points.csv", table);
    given_document(400, {{"data", {{"use", "csv"}, {"path", "points.csv"}, {"target", "t"}}},
                         {"model", {{"use", "linear"}}},
                         {"optimizer", {{"use", "sgd"}, {"learning_rate", 1.5}}},
                         {"training",
                          {{"use", "standard"},
                           {"epochs", 400},
                           {"batch_size", 16},
                           {"checkpoint", {{"every", "1ep"}}}}}});
  }
};

TEST_F(BadInput, DataThatIsNotThere) {
  EXPECT_EQ(verdict(5), "points.csv: no such file");
  fs::create_directory(folder() / "points.csv");
  EXPECT_EQ(verdict(5), "points.csv: is a folder; \"path\" must name a file");
}

TEST_F(BadInput, DataThatHoldsNothing) {
  EXPECT_EQ(verdict_on(""), "points.csv: the file is empty");
  EXPECT_EQ(verdict_on("x,y,class\n"), "points.csv: there is a header line, but no row");
}

TEST_F(BadInput, DataThatIsNoTable) {
  EXPECT_EQ(verdict_on(std::string_view("\0\1\2\3", 4)),
            "points.csv:1: there is a NUL byte; this is not a text file");
  EXPECT_EQ(verdict_on("x,y,class\n1,2,blue\n1,red\n"), "points.csv:3: expected 3 fields, got 2");
  EXPECT_EQ(verdict_on("x,y,class\n1,\"2,blue\n1,4,red\n"),
            "points.csv:2: a quoted field is not closed before the end of the file");
  EXPECT_EQ(verdict_on("x,x,class\n1,2,blue\n1,4,red\n"),
            "points.csv:1: columns 0 and 1 are both named \"x\"; if the file has no header line, "
            "set \"header\": false");
}

TEST_F(BadInput, ValuesThatAreNoNumbers) {
  EXPECT_EQ(verdict_on("x,y,class\n1,2,blue\n1,abc,red\n2,3,blue\n"),
            "points.csv:3: column \"y\": expected a number, got \"abc\"; list the column in "
            "\"categorical\" or the text "
            "in \"missing_values\"");
  EXPECT_EQ(verdict_on("x,y,class\n1,2,blue\n1,nan,red\n2,3,blue\n"),
            "points.csv:3: column \"y\": the value is missing (\"nan\"); \"missing\": \"drop_row\" "
            "leaves such rows "
            "out, \"nan\" hands them to the transform \"impute\"");
  EXPECT_EQ(verdict_on("x,y,class\n1,2,blue\n1,inf,red\n2,3,blue\n"),
            "points.csv:3: column \"y\": got \"inf\": infinity cannot be trained on");
  EXPECT_EQ(verdict_on("x,y,class\n1,1e60,blue\n1,4,red\n"),
            "points.csv:2: column \"y\": 1e+60 is too large for float32; scale it with a transform "
            "such as \"standardize\", or set \"precision\": \"float64\" (while preparing batch 1 "
            "of epoch 1)");
}

TEST_F(BadInput, ATargetThatCannotBeTrainedFor) {
  EXPECT_EQ(
      verdict_on("x,y,klass\n1,2,blue\n1,4,red\n"),
      "points.csv:1: there is no column \"class\" for \"target\"; the columns are x, y, klass; did "
      "you mean \"klass\"?");
  EXPECT_EQ(verdict_on("x,y,class\n1,2,blue\n1,4,blue\n2,3,blue\n"),
            "points.csv: target \"class\" has one class only (\"blue\"); a classifier needs at "
            "least two");
  EXPECT_EQ(
      verdict_on("x,y,class\n1,2,blue\n1,4,red\n2,3,blue\n2,5,red\n", {R"(loss={"use":"mse"})"}),
      "loss \"mse\" needs numbers, but the target \"class\" is classes; use cross_entropy or "
      "bce_with_logits");
}

TEST_F(BadInput, MoreFoldsThanRows) {
  const char* const kFourRows = "x,y,class\n1,2,blue\n1,4,red\n2,3,blue\n2,5,red\n";
  EXPECT_EQ(verdict_on(kFourRows, {R"(validation={"use":"k_fold","folds":7})"}),
            "\"folds\": 7 requires at least as many rows, got 4 rows");
  EXPECT_EQ(verdict_on(kFourRows, {R"(validation={"use":"k_fold","folds":3})"}),
            "class \"blue\" has 2 rows, but 3 folds require at least one of each class per fold; "
            "take fewer folds or set "
            "\"stratify\": false");
}

TEST_F(BadInput, EveryMistakeInADocumentAtOnce) {
  write("points.json", R"({
  "treadle": 1, "nmae": "points", "seed": -7,
  "data": {"use": "csv", "path": "points.csv", "target": "class"},
  "model": {"use": "mpl"},
  "optimizer": {"use": "adamw", "learning_rate": "fast", "learning_rat": 1},
  "training": {"use": "standard", "epochs": 0}
})");

  const Finished failed = run({"run", "points.json"});

  EXPECT_EQ(failed.code, 3);
  EXPECT_EQ(failed.err,
            "workflow-runner: points.json:2: /nmae: unknown key \"nmae\"; did you mean \"name\"? "
            "(a workflow takes: "
            "$schema, baselines, data, explain, extensions, loss, metrics, model, name, observers, "
            "optimizer, outputs, precision, resources, schedule, search, "
            "seed, sequence, training, transforms, treadle, validation)\n"
            "workflow-runner: points.json:2: /seed: must be >= 0, got -7\n"
            "workflow-runner: points.json:4: /model/use: no plugin offers the model \"mpl\"; did "
            "you mean \"mlp\"?\n"
            "workflow-runner: points.json:5: /optimizer/learning_rate: expected a number, got "
            "\"fast\" (text)\n"
            "workflow-runner: points.json:5: /optimizer/learning_rat: unknown key \"learning_rat\" "
            "(optimizer adamw takes: betas, eps, groups, learning_rate, weight_decay)\n"
            "workflow-runner: points.json:6: /training/epochs: must be >= 1, got 0\n");
}

TEST_F(BadInput, WhatOnlyMakesSenseWithTheMetricsIsFoundBeforeTheFirstEpoch) {
  given_points();
  EXPECT_THAT(verdict(3, {"training.restore_best_weights.monitor=auc"}),
              AllOf(StartsWith("--set training.restore_best_weights.monitor=auc: "),
                    HasSubstr("/training/restore_best_weights/monitor: there is no \"auc\" in"),
                    HasSubstr("train_loss, learning_rate, val_loss, accuracy"),
                    HasSubstr("add it to \"metrics\"")));
  EXPECT_THAT(verdict(3, {R"(training.early_stopping={"monitor":"accuracies"})"}),
              HasSubstr("/training/early_stopping/monitor: there is no \"accuracies\" in"));
}

TEST_F(BadInput, LeavesNoRunFolderWhenNothingWasTrained) {
  EXPECT_EQ(verdict(5), "points.csv: no such file");
  EXPECT_TRUE(!fs::exists(folder() / "runs") || fs::is_empty(folder() / "runs"));
}

TEST_F(BadInput, CheckFindsWallTimeWhereTwoRunsWouldDiffer) {
  const Finished failed =
      run({"check", "points.json", "--set", "training.early_stopping.patience=30s", "--set",
           "schedule.warmup=2h"});

  EXPECT_EQ(failed.code, 3);
  EXPECT_THAT(
      failed.err,
      HasSubstr("/training/early_stopping/patience: expected a share of the training, epochs or "
                "steps (\"5%\", \"10ep\", \"500st\"), because wall time would make two runs "
                "differ; got \"30s\"\n"));
  EXPECT_THAT(failed.err, HasSubstr("/schedule/warmup: expected a share"));
}

TEST_F(BadInput, ADocumentThatIsNone) {
  fs::remove(folder() / "points.json");
  EXPECT_EQ(verdict(3), "points.json: no such file");
  write("points.json", "");
  EXPECT_EQ(verdict(3), "points.json:1: the document is empty");
  write("points.json", "{\"treadle\": 1,\n \"seed\": 1,\n \"seed\": 2}");
  EXPECT_THAT(verdict(3),
              MatchesRegex("points.json:3: /seed: key \"seed\" appears twice.*; remove one"));
}

TEST_F(BadInput, ALossThatTurnsIntoNoNumberNamesTheLastGoodCheckpoint) {
  given_divergence();

  const std::string said = verdict(6);

  EXPECT_THAT(
      said,
      MatchesRegex("the loss or its gradient became NaN or infinite in epoch [0-9]+, step [0-9]+ "
                   "\\(final\\); the last good checkpoint is runs/points-[-0-9]+/checkpoints/final/"
                   "step-[0-9]+; try a lower optimizer.learning_rate, or bound the gradients with "
                   "training.clip.norm"));
  // And there it is, with the history of the epochs before.
  const std::size_t begin = said.find("runs/");
  EXPECT_TRUE(fs::exists(folder() / said.substr(begin, said.find(';', begin) - begin) /
                         "weights.safetensors"));
  EXPECT_THAT(read(only_run() / "history.csv"), HasSubstr("\nfinal,1,400,"));
}

TEST_F(BadInput, ALossThatIsNoNumberFromTheStartSaysThatThereIsNoCheckpoint) {
  given_points();
  EXPECT_THAT(verdict(6, {"optimizer.use=sgd", "optimizer.learning_rate=1e30"}),
              HasSubstr("; no checkpoint exists yet; "));
}

class BadPlugin : public CommandFixture {
 protected:
  BadPlugin() {
    given_points();
    given_document(1, {{"observers", {"listener"}}});
  }

  /// The libraries of tests/broken_plugins, one defect each.
  static fs::path defective(const std::string& name) {
    return fs::path(runner()).parent_path().parent_path() / "tests/broken_plugins" / name /
           (name + ".so");
  }

  /// What a run says that needs the component of the plugin in `file`.
  std::string verdict_on(const fs::path& file) {
    const Finished failed =
        run({"run", "points.json", "--quiet", "--plugin-dir", file.parent_path().string()});
    EXPECT_EQ(failed.code, 4) << failed.err;
    EXPECT_EQ(std::count(failed.err.begin(), failed.err.end(), '\n'), 1) << failed.err;
    std::string said = failed.err;
    if (const std::size_t at = said.find(file.string()); at != std::string::npos)
      said.replace(at, file.string().size(), "FILE");
    return said;
  }
};

TEST_F(BadPlugin, WithoutAnEntry) {
  set("TREADLE_PLUGIN_PROBE", "never");  // so that the run itself finds out
  EXPECT_EQ(verdict_on(defective("mute")),
            "workflow-runner: plugin org.treadle.test.whole 1.2.3 (FILE) has no entry "
            "(treadle_plugin_entry_v1); one "
            "of its source files must say TREADLE_PLUGIN(registrar) { … }\n");
}

TEST_F(BadPlugin, WhoseEntryThrows) {
  set("TREADLE_PLUGIN_PROBE", "never");
  EXPECT_EQ(verdict_on(defective("thrower")),
            "workflow-runner: plugin org.treadle.test.whole 1.2.3 (FILE) failed in its entry: the "
            "license server is "
            "asleep\n");
  EXPECT_EQ(verdict_on(defective("torch_thrower")),
            "workflow-runner: plugin org.treadle.test.whole 1.2.3 (FILE) failed in its entry: no "
            "tensor core in sight\n");
}

TEST_F(BadPlugin, ForAnotherLibtorch) {
  EXPECT_THAT(
      verdict_on(defective("stranger")),
      MatchesRegex(
          "workflow-runner: points.json:[0-9]+: /observers/0/use: no plugin offers the observer "
          "\"listener\"; org.treadle.test.whole 1.2.3 \\(FILE\\) offers it but cannot be used: it "
          "was "
          "built for libtorch 99.1.0, this runner uses [0-9.]+; was built with debug containers "
          "on, "
          "this runner has them off; rebuild it against this SDK\n"));
}

TEST_F(BadPlugin, ThatIsNoLibraryIsListedAndDoesNotStopAnything) {
  const std::string whole = read(defective("whole"));
  write("plugins/text.so", "just some text");
  write("plugins/short.so", whole.substr(0, whole.size() / 3));
  given_document(1);

  const Finished listed = run({"plugins", "list", "--plugin-dir", "plugins"});

  EXPECT_EQ(listed.code, 0);
  EXPECT_THAT(listed.out,
              HasSubstr("text.so is not a shared library: it does not begin with an ELF header\n"));
  EXPECT_THAT(listed.out,
              testing::ContainsRegex("short.so is truncated: .* the file has [0-9]+\n"));
  EXPECT_EQ(run({"run", "points.json", "--quiet", "--plugin-dir", "plugins"}).code, 0);
}

}  // namespace
}  // namespace treadle
