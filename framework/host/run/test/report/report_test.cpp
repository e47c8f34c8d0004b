#include <treadle/host/run/report.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report_reading.h"

namespace treadle {
namespace {

using Json = nlohmann::json;
using reading::card;
using reading::chart;
using reading::document_of;
using reading::find_block;
using reading::notes;
using reading::row;
using reading::text;
using reading::WrittenInput;
using testing::HasSubstr;
using testing::Not;

EpochSummary epoch(std::int64_t number, double loss, double accuracy, bool best) {
  EpochSummary summary;
  summary.epoch = number;
  summary.epochs = 3;
  summary.learning_rate = 0.01;
  summary.train_loss = loss;
  summary.val_loss = loss + 0.125;
  summary.metrics = {{"accuracy", accuracy, Direction::kHigherIsBetter}};
  summary.best = best;
  return summary;
}

WrittenInput hold_out_run() {
  WrittenInput input;
  input.name = "iris";
  input.document = Json{{"treadle", 1}, {"name", "iris"}, {"model", {{"use", "mlp"}}}};
  input.result = Json{
      {"started_at", "2031-05-04T10:11:12Z"},
      {"task", "classification"},
      {"final_loss", 0.5},
      {"best_loss", 0.25},
      {"best_epoch", 2},
      {"total_epochs", 3},
      {"training_time_seconds", 125.4},
      {"metrics", {{"accuracy", 0.9375}}},
      {"metric_list", {{{"name", "accuracy"}, {"better", "higher"}}}},
      {"validation",
       {{"loss", 0.375}, {"metrics", {{"accuracy", 0.90625}}}, {"sample_count", 12345}}},
      {"model_info",
       {{"name", "mlp"}, {"parameter_count", 1234567}, {"input_shape", {{"features", {4}}}}}},
      {"choices", {"the task is classification: the target is text"}},
      {"tables",
       {{{"name", "confusion_matrix"},
         {"row_labels", {"setosa", "versicolor"}},
         {"column_labels", {"setosa", "versicolor"}},
         {"values", {{10.0, 0.0}, {3.0, 7.0}}}}}},
      {"environment",
       {{"treadle", "0.1.0"},
        {"blas", "OpenBLAS"},
        {"plugins", {{{"id", "org.treadle.losses"}, {"version", "1.0.0"}, {"build_id", "ab"}}}}}}};
  input.curves = {
      {"final", {epoch(1, 1.0, 0.5, true), epoch(2, 0.5, 0.75, true), epoch(3, 0.6, 0.7, false)}}};
  return input;
}

WrittenInput cross_validation() {
  WrittenInput input = hold_out_run();
  input.result["mean_loss"] = 0.4;
  input.result["std_loss"] = 0.1;
  input.result["mean_metrics"] = {{"accuracy", 0.95}};
  input.result["std_metrics"] = {{"accuracy", 0.025}};
  input.result["fold_results"] = Json::array();
  for (double accuracy : {0.925, 0.975}) {
    input.result["fold_results"].push_back(
        {{"name", accuracy < 0.95 ? "fold-1" : "fold-2"},
         {"best_epoch", 2},
         {"total_epochs", 3},
         {"validation", {{"loss", 0.33}, {"metrics", {{"accuracy", accuracy}}}}}});
  }
  input.curves.insert(input.curves.begin(), {"fold-1", {epoch(1, 1.0, 0.5, true)}});
  return input;
}

Json columns_of(const Json& block) {
  return find_block(block, "table").at("columns");
}

/// The label and the value of each tile.
std::string tiles_of(const Json& document) {
  std::string all;
  const Json tiles = find_block(document, "tiles").at("tiles");
  for (const Json& tile : tiles)
    all += text(tile.at("label")) + ": " + text(tile.at("value")) + "\n";
  return all;
}

/// The epochs of a training by column.
Json column_of(const Json& document, std::size_t fit, const std::string& name) {
  const Json& columns = document.at("epochs").at("columns");
  const auto place = std::find(columns.begin(), columns.end(), name) - columns.begin();
  Json values = Json::array();
  for (const Json& cells : document.at("epochs").at("fits").at(fit).at("rows"))
    values.push_back(cells.at(static_cast<std::size_t>(place)));
  return values;
}

TEST(Report, ShowsWhatModelsLoggedAndWhatWasDecided) {
  WrittenInput input = hold_out_run();
  for (EpochSummary& one : input.curves[0].epochs)
    one.logged = {{"encoded", static_cast<double>(one.epoch) / 4, Direction::kNone}};
  input.curves[0].epochs[1].decisions = {"learning rate times 0.1: loss <stalled>", "stopped"};

  const Json document = document_of(input);

  EXPECT_EQ(column_of(document, 0, "log.encoded"), Json({0.25, 0.5, 0.75}));
  EXPECT_EQ(chart(document, "curve").at("columns"), Json({"accuracy", "log.encoded"}));
  EXPECT_EQ(column_of(document, 0, "decided"),
            Json({"", "learning rate times 0.1: loss <stalled>; stopped", ""}));
}

TEST(Report, NamesTheRunAndWhen) {
  const Json document = document_of(hold_out_run());

  EXPECT_EQ(document["title"], "iris");
  EXPECT_EQ(document["kind"], "training report");
  EXPECT_EQ(document["subtitle"], Json({"2031-05-04T10:11:12Z", "classification"}));
  EXPECT_EQ(document["version"], "0.1.0");
}

TEST(Report, ShowsTheValidationResultNotTheLastEpochs) {
  const Json document = document_of(hold_out_run());

  EXPECT_EQ(row(card(document, "Result"), "accuracy ↑"), Json({0.90625}));
  EXPECT_EQ(row(card(document, "Result"), "loss"), Json({0.375}));
  EXPECT_THAT(document.dump(), Not(HasSubstr("0.9375")));
}

TEST(Report, ShowsValidationAndTestUnderTheirOwnNames) {
  WrittenInput input = hold_out_run();
  input.result["test"] = {
      {"loss", 0.4375}, {"metrics", {{"accuracy", 0.8125}}}, {"sample_count", 50}};
  input.result["weights"] = {
      {"epoch", 2}, {"chosen", "best"}, {"by", "accuracy"}, {"on", "validation"}};

  const Json document = document_of(input);

  EXPECT_THAT(tiles_of(document),
              HasSubstr("test accuracy: 0.8125\nvalidation accuracy: 0.90625\n"));
  EXPECT_EQ(columns_of(card(document, "Result")), Json({"", "validation", "test"}));
  EXPECT_EQ(row(card(document, "Result"), "accuracy ↑"), Json({0.90625, 0.8125}));
  EXPECT_THAT(
      notes(card(document, "Result")),
      HasSubstr("The test rows (50) were not used in training or selection: their numbers measure "
                "the model. The validation rows selected the weights by accuracy."));
}

TEST(Report, ShowsTheTestOfACrossValidationsModel) {
  WrittenInput input = cross_validation();
  input.result["test"] = {
      {"loss", 0.4375}, {"metrics", {{"accuracy", 0.8125}}}, {"sample_count", 50}};

  const Json result = card(document_of(input), "Result");

  EXPECT_EQ(columns_of(result), Json({"", "mean ± deviation", "test", "fold-1", "fold-2"}));
  EXPECT_EQ(row(result, "loss")[1], 0.4375);
  EXPECT_THAT(notes(result), HasSubstr("then trained on all other rows"));
  EXPECT_THAT(notes(result), HasSubstr("The validation rows selected nothing in this run."));
}

TEST(Report, ReportsThatNumbersOfRowsWhichSelectedAreOptimistic) {
  WrittenInput input = hold_out_run();
  EXPECT_THAT(notes(document_of(input)), Not(HasSubstr("optimistic")));

  input.result["weights"] = {{"epoch", 2}, {"chosen", "best"}, {"on", "validation"}};
  EXPECT_THAT(notes(document_of(input)),
              HasSubstr("The validation rows also selected the weights, so their numbers "
                        "are optimistic"));
}

TEST(Report, HasRawNumbersWithTheirUnits) {
  const Json tiles = find_block(document_of(hold_out_run()), "tiles").at("tiles");

  EXPECT_EQ(tiles[3]["value"], Json({{"seconds", 125.4}}));
  EXPECT_EQ(tiles[4]["value"], Json({{"count", 1234567}}));
}

TEST(Report, ShowsMeanDeviationAndEveryFoldOfACrossValidation) {
  const Json document = document_of(cross_validation());
  const Json accuracy = row(card(document, "Result"), "accuracy ↑");

  EXPECT_EQ(document["subtitle"][2], "2-fold cross-validation");
  EXPECT_EQ(accuracy[0], Json({{"mean", 0.95}, {"deviation", 0.025}}));
  EXPECT_EQ(accuracy[1], 0.925);
  EXPECT_EQ(accuracy[2], 0.975);
  EXPECT_EQ(columns_of(card(document, "Result")),
            Json({"", "mean ± deviation", "fold-1", "fold-2"}));
}

TEST(Report, ReportsWhyANumberIsUnknown) {
  WrittenInput input = hold_out_run();
  input.result["validation"]["metrics"]["accuracy"] = nullptr;
  input.result["validation"]["undefined"] = {{"accuracy", "no rows"}};

  EXPECT_EQ(row(card(document_of(input), "Result"), "accuracy ↑"),
            Json::parse(R"([{"unknown": "no rows"}])"));
}

TEST(Report, ReportsThatTheModelOfACrossValidationWasTrainedAfterwards) {
  EXPECT_THAT(notes(document_of(cross_validation())),
              HasSubstr("trained on all rows, for 3 epochs"));

  WrittenInput without_refit = cross_validation();
  without_refit.curves.pop_back();
  EXPECT_THAT(notes(document_of(without_refit)), Not(HasSubstr("trained on all rows")));
}

TEST(Report, HasTheConfusionMatrixAsItWasStored) {
  const Json matrix = find_block(document_of(hold_out_run()), "confusion");

  EXPECT_EQ(matrix["row_labels"], Json({"setosa", "versicolor"}));
  EXPECT_EQ(matrix["values"], Json::parse("[[10.0, 0.0], [3.0, 7.0]]"));
}

TEST(Report, HasEveryCurve) {
  const Json document = document_of(cross_validation());
  const Json& fits = document["epochs"]["fits"];

  ASSERT_EQ(fits.size(), 2U);
  EXPECT_EQ(fits[1]["name"], "final");
  EXPECT_EQ(column_of(document, 1, "epoch"), Json({1, 2, 3}));
  EXPECT_EQ(column_of(document, 1, "training loss"), Json({1.0, 0.5, 0.6}));
  EXPECT_EQ(column_of(document, 1, "validation loss"), Json({1.125, 0.625, 0.725}));
  EXPECT_EQ(column_of(document, 1, "accuracy"), Json({0.5, 0.75, 0.7}));
  EXPECT_EQ(column_of(document, 1, "learning rate"), Json({0.01, 0.01, 0.01}));
  EXPECT_EQ(fits[1]["best"], 1);
  EXPECT_FALSE(find_block(document, "fits").is_null());
  EXPECT_FALSE(find_block(card(document, "Epochs"), "epochs").is_null());
}

TEST(Report, ThinsLongCurvesButKeepsTheBestAndTheLastEpoch) {
  WrittenInput input = hold_out_run();
  input.curves[0].epochs.clear();
  for (std::int64_t i = 1; i <= 9998; ++i)
    input.curves[0].epochs.push_back(epoch(i, 1.0, 0.5, i == 1 || i == 4321));

  const Json document = document_of(input);
  const Json epochs = column_of(document, 0, "epoch");
  const Json& fit = document["epochs"]["fits"][0];

  EXPECT_LE(epochs.size(), 1202U);
  EXPECT_EQ(epochs.back(), 9998);
  EXPECT_EQ(epochs.at(fit["best"].get<std::size_t>()), 4321);
  EXPECT_EQ(fit["epochs"], 9998);
}

TEST(Report, HasNullForWhatIsNotANumber) {
  WrittenInput input = hold_out_run();
  input.result["validation"]["loss"] = std::numeric_limits<double>::quiet_NaN();
  input.curves[0].epochs[0].train_loss = std::numeric_limits<double>::infinity();

  const Json document = document_of(input);

  EXPECT_EQ(row(card(document, "Result"), "loss"), Json::parse("[null]"));
  EXPECT_TRUE(column_of(document, 0, "training loss")[0].is_null());
}

TEST(Report, ShowsNumbersOfOneClassInATableByClass) {
  WrittenInput input = hold_out_run();
  input.result["validation"]["metrics"]["recall.setosa"] = 0.125;
  input.result["validation"]["metrics"]["recall.versicolor"] = 0.5;

  const Json document = document_of(input);

  EXPECT_EQ(columns_of(card(document, "By class")), Json({"class", "recall"}));
  EXPECT_EQ(row(card(document, "By class"), "setosa"), Json({0.125}));
  EXPECT_THAT(document.dump(), Not(HasSubstr("recall.setosa")));
}

TEST(Report, DescribesTheModel) {
  WrittenInput input = hold_out_run();
  input.result["model_info"]["architecture"] = {{"use", "mlp"}, {"hidden", {16, 8}}};
  input.result["model_info"]["input_shape"] = {{"features", {3, 4}}};

  const Json document = document_of(input);
  const Json model = card(document, "Model");

  EXPECT_EQ(row(model, "architecture")[0]["setting"], input.result["model_info"]["architecture"]);
  EXPECT_EQ(row(model, "input shape")[0]["shape"], Json({{"features", {3, 4}}}));
  EXPECT_EQ(row(model, "parameters")[0]["count"], 1234567);
  EXPECT_EQ(document["subtitle"].back(), "mlp");
}

TEST(Report, DrawsResidualsOfARegression) {
  WrittenInput input = hold_out_run();
  input.result["task"] = "regression";
  input.result["tables"] = {{{"name", "residual_sample"},
                             {"column_labels", {"actual", "predicted"}},
                             {"values", {{1.0, 1.5}, {2.0, 1.75}}}},
                            {{"name", "residual_histogram"},
                             {"column_labels", {"from", "to", "count"}},
                             {"values", {{-1.0, 0.0, 1.0}, {0.0, 1.0, 1.0}}}}};

  const Json document = document_of(input);

  EXPECT_EQ(chart(card(document, "Predicted and actual"), "scatter")["tables"][0]["values"],
            Json::parse("[[1.0, 1.5], [2.0, 1.75]]"));
  EXPECT_EQ(chart(card(document, "Residuals"), "histogram")["tables"][0]["values"],
            Json::parse("[[-1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]"));
  EXPECT_TRUE(find_block(document, "confusion").is_null());
  EXPECT_TRUE(find_block(document, "errors").is_null());
}

TEST(Report, DrawsTheCurvesThatDecisionsAreMadeBy) {
  WrittenInput input = hold_out_run();
  const Json curves = {{"name", "curves"},
                       {"row_labels", {"yes", "yes"}},
                       {"column_labels", {"threshold", "false_positive_rate"}},
                       {"values", {{nullptr, 0.0}, {0.5, 1.0}}}};
  input.result["tables"] = {curves,
                            {{"name", "reliability"},
                             {"column_labels", {"confidence", "accuracy", "weight"}},
                             {"values", {{0.7, 0.5, 4.0}}}},
                            {{"name", "thresholds"},
                             {"row_labels", {"0.5"}},
                             {"column_labels", {"precision"}},
                             {"values", {{0.25}}}}};

  const Json document = document_of(input);

  EXPECT_EQ(chart(card(document, "Curves"), "decision_curves")["tables"][0]["values"],
            curves["values"]);
  EXPECT_EQ(chart(card(document, "Reliability"), "reliability")["tables"].size(), 1U);
  EXPECT_TRUE(card(document, "Scores by class").is_null());
  EXPECT_EQ(find_block(card(document, "Thresholds"), "numbers")["values"], Json::parse("[[0.25]]"));
}

TEST(Report, ShowsOutputsWithTheNumbersWithoutThem) {
  WrittenInput input = hold_out_run();
  input.result["outputs"] = {
      {"rows_from", "set_aside"},
      {"rows", 30},
      {"stages", {{{"name", "temperature"}, {"learned", {{"temperature", 1.5}}}}}},
      {"metrics_without", {{"accuracy", 0.5}}},
      {"not_evaluated", {"fold-1"}}};

  const Json outputs = card(document_of(input), "Outputs");

  EXPECT_EQ(row(outputs, "temperature")[0], Json({"temperature ", 1.5}));
  EXPECT_EQ(find_block(outputs, "table")["rows"][0][2], 0.5);
  EXPECT_EQ(find_block(outputs, "note")["text"][1]["count"], 30);
  EXPECT_THAT(find_block(outputs, "note").dump(), ::testing::HasSubstr("fold-1"));
  EXPECT_TRUE(card(document_of(hold_out_run()), "Outputs").is_null());
}

TEST(Report, ShowsManyOutputsInOneSectionWithTheErrorOfEach) {
  WrittenInput input = hold_out_run();
  input.result["task"] = "regression";
  input.result["data"] = {{"rows", 4}, {"targets", {{{"name", "load"}}}}};
  const Json sample = {{0, 1.0, 1.5}, {0, 2.0, 1.5}, {1, 5.0, 2.0}, {1, 1.0, 5.0}};
  input.result["tables"] = {{{"name", "residual_sample"},
                             {"column_labels", {"output", "actual", "predicted"}},
                             {"outputs", 2},
                             {"values", sample}},
                            {{"name", "residual_histogram"},
                             {"column_labels", {"output", "from", "to", "count"}},
                             {"outputs", 2},
                             {"values", {{0, -1.0, 1.0, 2.0}, {1, -4.0, 4.0, 2.0}}}}};

  const Json document = document_of(input);
  const Json drawn = chart(document, "scatter")["tables"];

  ASSERT_EQ(drawn.size(), 1U);
  EXPECT_EQ(drawn[0]["target"], "load");
  EXPECT_EQ(drawn[0]["values"], sample);
  EXPECT_EQ(find_block(card(document, "Error by output"), "errors")["tables"], drawn);
  EXPECT_TRUE(card(document, "residual_sample").is_null());
}

TEST(Report, DrawsTheResidualsOfSeveralTargetsInOneSection) {
  WrittenInput input = hold_out_run();
  input.result["data"] = {{"rows", 2}, {"targets", {{{"name", "price"}}, {{"name", "area"}}}}};
  input.result["tables"] = {{{"name", "price/residual_sample"},
                             {"column_labels", {"actual", "predicted"}},
                             {"values", {{1.0, 1.5}, {2.0, 1.5}}}},
                            {{"name", "price/residual_histogram"},
                             {"column_labels", {"from", "to", "count"}},
                             {"values", {{-1.0, 1.0, 2.0}}}},
                            {{"name", "area/residual_sample"},
                             {"column_labels", {"output", "actual", "predicted"}},
                             {"values", {{0, 5.0, 2.0}, {1, 1.0, 5.0}}}}};

  const Json document = document_of(input);
  const Json drawn = chart(document, "scatter")["tables"];

  ASSERT_EQ(drawn.size(), 2U);
  EXPECT_EQ(drawn[0]["target"], "price");
  EXPECT_EQ(drawn[1]["target"], "area");
  EXPECT_EQ(drawn[1]["values"], Json::parse("[[0, 5.0, 2.0], [1, 1.0, 5.0]]"));
  EXPECT_EQ(chart(document, "histogram")["tables"].size(), 1U);
  EXPECT_FALSE(card(document, "Error by output").is_null());
  EXPECT_TRUE(card(document, "price/residual_sample").is_null());
}

TEST(Report, ThinsALargeSampleOfResiduals) {
  WrittenInput input = hold_out_run();
  Json values = Json::array();
  for (int i = 0; i < 20000; ++i)
    values.push_back({i / 3.0, i});
  input.result["tables"] = {{{"name", "residual_sample"},
                             {"column_labels", {"actual", "predicted"}},
                             {"values", std::move(values)}}};

  const Json drawn = chart(document_of(input), "scatter")["tables"][0]["values"];

  EXPECT_LE(drawn.size(), 6000U);
  EXPECT_GE(drawn.size(), 4000U);
  EXPECT_EQ(drawn[1], Json::parse("[1.33333, 4.0]")) << "six digits are enough";
}

TEST(Report, ShowsAConfusionMatrixForEachTarget) {
  WrittenInput input = hold_out_run();
  const Json counts = {{2.0, 0.0}, {1.0, 3.0}};
  input.result["tables"] = {{{"name", "kind/confusion_matrix"},
                             {"row_labels", {"a", "b"}},
                             {"column_labels", {"a", "b"}},
                             {"values", counts}},
                            {{"name", "color/confusion_matrix"},
                             {"row_labels", {"red", "blue"}},
                             {"column_labels", {"red", "blue"}},
                             {"values", counts}}};

  const Json document = document_of(input);

  EXPECT_FALSE(find_block(card(document, "Confusion matrix: kind"), "confusion").is_null());
  EXPECT_FALSE(find_block(card(document, "Confusion matrix: color"), "confusion").is_null());
  EXPECT_TRUE(card(document, "kind/confusion_matrix").is_null());
}

TEST(Report, NamesTheWeightsThatWereKeptAndTheMeasure) {
  WrittenInput input = hold_out_run();
  const auto detail = [&] {
    return text(find_block(document_of(input), "tiles").at("tiles")[2].at("detail"));
  };
  input.result["weights"] = {{"epoch", 2}, {"chosen", "best"}, {"by", "accuracy"}};
  EXPECT_THAT(notes(document_of(input)), HasSubstr("weights of epoch 2, the best by accuracy."));
  EXPECT_EQ(detail(), "kept 2");

  input.result["weights"] = {{"epoch", 3}, {"chosen", "last"}};
  EXPECT_THAT(notes(document_of(input)), HasSubstr("weights of the last epoch, 3."));
  EXPECT_EQ(detail(), "–");
}

TEST(Report, CallsNoEpochTheBestByTrainingLoss) {
  WrittenInput input = hold_out_run();
  for (EpochSummary& one : input.curves[0].epochs)
    one.val_loss.reset();

  EXPECT_TRUE(document_of(input)["epochs"]["fits"][0]["best"].is_null());
}

TEST(Report, LabelsALossThatIsNotInTheDatasUnits) {
  WrittenInput input = hold_out_run();
  EXPECT_THAT(tiles_of(document_of(input)), HasSubstr("validation loss: "));

  input.result["transformed_target"] = true;
  EXPECT_THAT(tiles_of(document_of(input)),
              HasSubstr("validation loss of the transformed target: "));
}

TEST(Report, OrdersMetricsAsTheDocumentDoes) {
  WrittenInput input = hold_out_run();
  input.curves.clear();
  input.result["validation"]["metrics"] = {{"auc", 0.75}, {"zeal", 0.5}};
  input.result["metric_list"] = {{{"name", "zeal"}}, {{"name", "auc"}}};

  const Json rows = find_block(card(document_of(input), "Result"), "table").at("rows");

  EXPECT_EQ(rows, Json::parse(R"([["loss", 0.375], ["zeal", 0.5], ["auc", 0.75]])"));
}

TEST(Report, NamesItsTimes) {
  WrittenInput input = cross_validation();
  input.result["time"] = {{"seconds", 4.5}};
  input.result["total_time_seconds"] = 6.75;

  const Json document = document_of(input);

  EXPECT_THAT(tiles_of(document), HasSubstr("wall time: 4.5\n"));
  EXPECT_THAT(notes(document), HasSubstr("took 6.75 in total over the folds"));
}

TEST(Report, ShowsTheProcessesOfASharedRun) {
  WrittenInput input = hold_out_run();
  EXPECT_TRUE(card(document_of(input), "Processes").is_null());

  input.result["time"]["ranks"] = {{{"host", "node-1"},
                                    {"exchange_seconds", 1.5},
                                    {"waiting_share", 0.25},
                                    {"budget_used", 0.75}},
                                   {{"host", "node-2"},
                                    {"exchange_seconds", 3.0},
                                    {"waiting_share", 0.5},
                                    {"budget_used", 1.0}}};
  const Json document = document_of(input);

  EXPECT_THAT(tiles_of(document), HasSubstr("processes: 2"));
  EXPECT_EQ(
      find_block(card(document, "Processes"), "table").at("rows"),
      Json::parse(R"([["rank 0", "node-1", {"seconds": 1.5}, {"share": 0.25}, {"share": 0.75}],
                            ["rank 1", "node-2", {"seconds": 3.0}, {"share": 0.5}, {"share": 1.0}]])"));
}

TEST(Report, DescribesTheData) {
  WrittenInput input = hold_out_run();
  EXPECT_TRUE(find_block(document_of(input), "data").is_null());

  input.result["data"] = {{"rows", 200}};

  EXPECT_EQ(find_block(document_of(input), "data")["record"], Json({{"rows", 200}}));
}

TEST(Report, DescribesTheEnvironmentAndTheDevice) {
  WrittenInput input = hold_out_run();
  EXPECT_EQ(find_block(document_of(input), "environment")["record"], input.result["environment"]);
  EXPECT_TRUE(find_block(document_of(input), "device").is_null());

  input.result["device"] = {{"name", "gpu"}};

  EXPECT_EQ(find_block(document_of(input), "device")["record"]["name"], "gpu");
}

TEST(Report, ShowsTheModelsPictureAndItsNodes) {
  WrittenInput input = hold_out_run();
  input.model.parts = {{"node", "layer"}, {"dense_0", "dense"}, {"  inner<b>", "gru"}};

  const Json without_picture = document_of(input);
  EXPECT_EQ(row(card(without_picture, "Model graph"), "dense_0"), Json({"dense"}));
  EXPECT_EQ(row(card(without_picture, "Model graph"), "  inner<b>"), Json({"gru"}));
  EXPECT_TRUE(find_block(without_picture, "picture").is_null());

  input.model.svg = "<?xml version=\"1.0\"?>\n<svg><script>alert(1)</script></svg>";
  const Json document = document_of(input);
  EXPECT_EQ(find_block(document, "picture")["svg"], "<svg><script>alert(1)</script></svg>");
  EXPECT_EQ(row(card(document, "Nodes"), "dense_0"), Json({"dense"}));
}

TEST(Report, ShowsTheOperationsThatWereSelectedForAStructure) {
  WrittenInput input = hold_out_run();
  EXPECT_TRUE(find_block(document_of(input), "structure").is_null());
  input.result["structures"] = Json::parse(R"([{"structure": "cell", "choices": []}])");

  EXPECT_EQ(find_block(document_of(input), "structure")["record"], input.result["structures"][0]);
}

TEST(Report, ShowsHowAModelFollowedItsTask) {
  WrittenInput input = hold_out_run();
  input.result["prequential"] = {{"loss", 0.5}, {"windows", Json::array()}};
  EXPECT_TRUE(find_block(document_of(input), "adaptation").is_null());
  input.result["prequential"]["windows"] = {{{"first_row", 0}, {"rows", 50}}};

  const Json document = document_of(input);

  EXPECT_EQ(find_block(document, "adaptation")["record"]["windows"][0]["rows"], 50);
  EXPECT_EQ(columns_of(card(document, "Result")), Json({"", "mean of windows"}));
  EXPECT_EQ(row(card(document, "Result"), "loss"), Json({0.5}));
}

TEST(Report, ShowsTheTableOfAnUnknownMetric) {
  WrittenInput input = hold_out_run();
  input.result["tables"] = {{{"name", "calibration"},
                             {"row_labels", {"low", "high"}},
                             {"column_labels", {"share"}},
                             {"values", {{0.25}, {0.75}}}}};

  const Json shown = find_block(card(document_of(input), "calibration"), "numbers");

  EXPECT_EQ(shown["row_labels"], Json({"low", "high"}));
  EXPECT_EQ(shown["values"], Json::parse("[[0.25], [0.75]]"));
}

TEST(Report, ShowsForecastsOfTheTestRowsOnceWhereThereAreAny) {
  WrittenInput input = hold_out_run();
  const auto by_step = [](double value) {
    return Json{{"name", "metrics_by_step"},
                {"row_labels", {"1"}},
                {"column_labels", {"mae"}},
                {"values", {{value}}}};
  };
  input.result["tables"] = {by_step(0.5)};
  EXPECT_EQ(chart(document_of(input), "by_step")["tables"][0]["values"][0][0], 0.5);

  input.result["test"] = {{"tables", {by_step(0.75)}}};
  const Json document = document_of(input);

  EXPECT_EQ(chart(document, "by_step")["tables"][0]["values"][0][0], 0.75);
  EXPECT_TRUE(card(document, "metrics_by_step").is_null());
}

TEST(Report, MarksPicturesOfWrongPredictions) {
  WrittenInput input = hold_out_run();
  input.result["data"]["targets"] = {
      {{"name", "animal"}, {"classes", {{{"name", "cat"}}, {{"name", "dog"}}}}}};
  input.result["tables"] = {{{"name", "picture_sample"},
                             {"row_labels", {"data:a", "data:b"}},
                             {"column_labels", {"row", "actual", "predicted", "probability"}},
                             {"values", {{4, 0, 0, 0.75}, {9, 1, 0, 0.5}}}}};

  const Json pictures = find_block(card(document_of(input), "Predictions"), "gallery")["pictures"];

  EXPECT_EQ(pictures[0]["label"], Json({"cat", " (", {{"share", 0.75}}, ")"}));
  EXPECT_EQ(pictures[1]["label"],
            Json({"dog", ", predicted ", "cat", " (", {{"share", 0.5}}, ")"}));
  EXPECT_EQ(pictures[0]["is_wrong"], false);
  EXPECT_EQ(pictures[1]["is_wrong"], true);
}

TEST(Report, IsWrittenForARunThatHasAlmostNothing) {
  WrittenInput input;
  input.name = "empty";

  const Json document = document_of(input);

  EXPECT_EQ(document["title"], "empty");
  EXPECT_THAT(document.dump(), Not(HasSubstr("\"chart\"")));
}

}  // namespace
}  // namespace treadle
