#include <treadle/host/run/report.h>

#include <cmath>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace treadle {
namespace {

using Json = nlohmann::json;
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

ReportInput hold_out_run() {
  ReportInput input;
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
      {"validation",
       {{"loss", 0.375}, {"metrics", {{"accuracy", 0.90625}}}, {"sample_count", 12345}}},
      {"model_info", {{"name", "mlp"}, {"parameter_count", 1234567}, {"input_shape", {4}}}},
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

ReportInput cross_validation() {
  ReportInput input = hold_out_run();
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

TEST(Report, ShowsWhatModelsShowedAndWhatWasDecided) {
  ReportInput input = hold_out_run();
  for (EpochSummary& row : input.curves[0].epochs)
    row.logged = {{"encoded", static_cast<double>(row.epoch) / 4, Direction::kNone}};
  input.curves[0].epochs[1].decisions = {"learning rate times 0.1: loss <stalled>"};

  const std::string page = render_report(input);

  EXPECT_THAT(page, HasSubstr("\"log.encoded\":[0.25,0.5,0.75]"));
  EXPECT_THAT(page, HasSubstr("<option>log.encoded</option>"));
  EXPECT_THAT(page, HasSubstr("<th scope=\"col\">log.encoded</th>"));
  EXPECT_THAT(page, HasSubstr("<td>learning rate times 0.1: loss &lt;stalled&gt;</td>"));
}

/// The value of the data island, as the page's script would read it.
Json data_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"report-data\"";
  const std::size_t begin = page.find('>', page.find(open)) + 1;
  return Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

std::string without_scripts(std::string page) {
  for (std::size_t at = page.find("<script"); at != std::string::npos; at = page.find("<script")) {
    page.erase(at, page.find("</script>", at) + 9 - at);
  }
  return page;
}

TEST(Report, LoadsNothingFromAnywhere) {
  const std::string page = render_report(hold_out_run());

  EXPECT_THAT(page, HasSubstr("Content-Security-Policy\" content=\"default-src 'none'"));
  EXPECT_THAT(page, Not(HasSubstr("sourceMappingURL")));
  for (const char* word : {"src=\"http", "href=\"http", "src='http", "url(http", "@import"})
    EXPECT_THAT(without_scripts(page), Not(HasSubstr(word)));
}

TEST(Report, CarriesChartJs) {
  EXPECT_THAT(render_report(hold_out_run()), HasSubstr("Chart.js v"));
}

TEST(Report, LeavesNoPlaceholderOpen) {
  EXPECT_THAT(without_scripts(render_report(cross_validation())), Not(HasSubstr("{{")));
}

TEST(Report, NamesTheRunAndWhen) {
  const std::string page = render_report(hold_out_run());

  EXPECT_THAT(page, HasSubstr("<title>iris · training report</title>"));
  EXPECT_THAT(page, HasSubstr("2031-05-04T10:11:12Z · classification"));
}

TEST(Report, ShowsTheValidationResultNotTheLastEpochs) {
  const std::string page = render_report(hold_out_run());

  EXPECT_THAT(page, HasSubstr("<td>0.9062</td>"));
  EXPECT_THAT(page, HasSubstr("<td>0.3750</td>"));
  EXPECT_THAT(without_scripts(page), Not(HasSubstr("0.9375")));
}

TEST(Report, ShowsValidationAndTestUnderTheirOwnNames) {
  ReportInput input = hold_out_run();
  input.result["test"] = {
      {"loss", 0.4375}, {"metrics", {{"accuracy", 0.8125}}}, {"sample_count", 50}};
  input.result["weights"] = {
      {"epoch", 2}, {"chosen", "best"}, {"by", "accuracy"}, {"on", "validation"}};

  const std::string page = without_scripts(render_report(input));

  EXPECT_THAT(page, HasSubstr("<span>test accuracy</span><b>0.8125</b>"));
  EXPECT_THAT(page, HasSubstr("<span>validation accuracy</span><b>0.9062</b>"));
  EXPECT_THAT(page, HasSubstr("<th scope=\"col\">validation</th><th scope=\"col\">test</th>"));
  EXPECT_THAT(page, HasSubstr("<td>0.9062</td><td>0.8125</td>"));
  EXPECT_THAT(page,
              HasSubstr("The test rows (50) were not used in training or selection: their numbers "
                        "measure the model. The validation rows chose the weights by accuracy."));
}

TEST(Report, ShowsTheTestOfACrossValidationsModel) {
  ReportInput input = cross_validation();
  input.result["test"] = {
      {"loss", 0.4375}, {"metrics", {{"accuracy", 0.8125}}}, {"sample_count", 50}};

  const std::string page = without_scripts(render_report(input));

  EXPECT_THAT(page,
              HasSubstr("<th scope=\"col\">mean ± deviation</th><th scope=\"col\">test</th>"));
  EXPECT_THAT(page, HasSubstr("then trained on all other rows"));
  EXPECT_THAT(page, HasSubstr("The validation rows chose nothing in this run."));
}

TEST(Report, ReportsThatNumbersOfRowsWhichChoseAreOptimistic) {
  ReportInput input = hold_out_run();
  EXPECT_THAT(without_scripts(render_report(input)), Not(HasSubstr("optimistic")));

  input.result["weights"] = {{"epoch", 2}, {"chosen", "best"}, {"on", "validation"}};
  EXPECT_THAT(
      without_scripts(render_report(input)),
      HasSubstr("The validation rows chose the weights that they evaluate, so their numbers are "
                "optimistic"));
}

TEST(Report, WritesNumbersForPeople) {
  const std::string page = render_report(hold_out_run());

  EXPECT_THAT(page, HasSubstr("1\u202F234\u202F567"));
  EXPECT_THAT(page, HasSubstr("2 min 05 s"));
}

TEST(Report, ShowsMeanDeviationAndEveryFoldOfACrossValidation) {
  const std::string page = render_report(cross_validation());

  EXPECT_THAT(page, HasSubstr("2-fold cross-validation"));
  EXPECT_THAT(page, HasSubstr("0.9500 <small class=\"spread\">± 0.0250</small>"));
  EXPECT_THAT(page, HasSubstr("<th scope=\"col\">fold-2</th>"));
  EXPECT_THAT(page, HasSubstr("<td>0.9250</td><td>0.9750</td>"));
}

TEST(Report, SaysThatTheModelOfACrossValidationWasTrainedAfterwards) {
  EXPECT_THAT(render_report(cross_validation()), HasSubstr("trained on all rows, for 3 epochs"));

  ReportInput without_refit = cross_validation();
  without_refit.curves.pop_back();
  EXPECT_THAT(render_report(without_refit), Not(HasSubstr("trained on all rows")));
}

TEST(Report, ColoursTheConfusionMatrixByShareOfTheRow) {
  const std::string page = render_report(hold_out_run());

  EXPECT_THAT(page, HasSubstr("<td class=\"good-5 heavy\">10<small>100 %</small></td>"));
  EXPECT_THAT(page, HasSubstr("<td>0<small>0 %</small></td>"));
  EXPECT_THAT(page, HasSubstr("<td class=\"bad-2\">3<small>30 %</small></td>"));
  EXPECT_THAT(page, HasSubstr("<td class=\"good-4 heavy\">7<small>70 %</small></td>"));
}

TEST(Report, GivesTheScriptEveryCurve) {
  const Json data = data_of(render_report(cross_validation()));

  ASSERT_EQ(data["curves"].size(), 2U);
  EXPECT_EQ(data["curves"][1]["fit"], "final");
  EXPECT_EQ(data["curves"][1]["epochs"], Json({1, 2, 3}));
  EXPECT_EQ(data["curves"][1]["train_loss"], Json({1.0, 0.5, 0.6}));
  EXPECT_EQ(data["curves"][1]["val_loss"], Json({1.125, 0.625, 0.725}));
  EXPECT_EQ(data["curves"][1]["metrics"]["accuracy"], Json({0.5, 0.75, 0.7}));
  EXPECT_EQ(data["curves"][1]["best"], Json({false, true, false}));
}

TEST(Report, ThinsLongCurvesButKeepsTheBestAndTheLastEpoch) {
  ReportInput input = hold_out_run();
  input.curves[0].epochs.clear();
  for (std::int64_t i = 1; i <= 9998; ++i)
    input.curves[0].epochs.push_back(epoch(i, 1.0, 0.5, i == 1 || i == 4321));

  const Json curve = data_of(render_report(input))["curves"][0];

  EXPECT_LE(curve["epochs"].size(), 1202U);
  EXPECT_EQ(curve["epochs"].back(), 9998);
  const auto best = std::find(curve["best"].begin(), curve["best"].end(), Json(true));
  ASSERT_NE(best, curve["best"].end());
  EXPECT_EQ(curve["epochs"][best - curve["best"].begin()], 4321);
}

TEST(Report, ShowsWhatIsNotANumberAsADash) {
  ReportInput input = hold_out_run();
  input.result["validation"]["loss"] = std::numeric_limits<double>::quiet_NaN();
  input.curves[0].epochs[0].train_loss = std::numeric_limits<double>::infinity();

  const std::string page = render_report(input);

  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">loss</th><td>–</td>"));
  EXPECT_TRUE(data_of(page)["curves"][0]["train_loss"][0].is_null());
}

TEST(Report, ShowsNumbersOfOneClassInATableByClass) {
  ReportInput input = hold_out_run();
  input.result["validation"]["metrics"]["recall.setosa"] = 0.125;
  input.result["validation"]["metrics"]["recall.versicolor"] = 0.5;

  const std::string page = render_report(input);

  EXPECT_THAT(page, HasSubstr("<h2>By class</h2>"));
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">setosa</th><td>0.1250</td>"));
  EXPECT_THAT(page, Not(HasSubstr("recall.setosa")));
}

TEST(Report, SaysWhatTheModelIs) {
  ReportInput input = hold_out_run();
  input.result["model_info"]["architecture"] = {{"use", "mlp"}, {"hidden", {16, 8}}};
  input.result["model_info"]["input_shape"] = {{"features", {3, 4}}};

  const std::string page = render_report(input);

  EXPECT_THAT(page, HasSubstr("<td>mlp: hidden [16,8]</td>"));
  EXPECT_THAT(page, HasSubstr("<td>features: 3 × 4</td>"));
}

TEST(Report, DrawsResidualsOfARegression) {
  ReportInput input = hold_out_run();
  input.result["task"] = "regression";
  input.result["tables"] = {{{"name", "residual_sample"},
                             {"column_labels", {"actual", "predicted"}},
                             {"values", {{1.0, 1.5}, {2.0, 1.75}}}},
                            {{"name", "residual_histogram"},
                             {"column_labels", {"from", "to", "count"}},
                             {"values", {{-1.0, 0.0, 1.0}, {0.0, 1.0, 1.0}}}}};

  const std::string page = render_report(input);

  EXPECT_THAT(page, HasSubstr("id=\"scatter-chart\""));
  EXPECT_THAT(page, HasSubstr("id=\"histogram-chart\""));
  EXPECT_THAT(page, Not(HasSubstr("Confusion matrix")));
  const Json drawn = data_of(page)["residuals"];
  ASSERT_EQ(drawn.size(), 1U);
  EXPECT_EQ(drawn[0]["sample"], Json::parse("[[1.0, 1.5], [2.0, 1.75]]"));
  EXPECT_EQ(drawn[0]["histogram"], Json::parse("[[-1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]"));
  EXPECT_THAT(page, Not(HasSubstr("<select class=\"chip\" id=\"output-picker\"")));
}

TEST(Report, ShowsManyOutputsInOneSectionWithAChooserAndTheErrorOfEach) {
  ReportInput input = hold_out_run();
  input.result["task"] = "regression";
  input.result["data"] = {{"rows", 4}, {"targets", {{{"name", "load"}}}}};
  input.result["tables"] = {
      {{"name", "residual_sample"},
       {"column_labels", {"output", "actual", "predicted"}},
       {"values", {{0, 1.0, 1.5}, {0, 2.0, 1.5}, {1, 5.0, 2.0}, {1, 1.0, 5.0}}}},
      {{"name", "residual_histogram"},
       {"column_labels", {"output", "from", "to", "count"}},
       {"values", {{0, -1.0, 1.0, 2.0}, {1, -4.0, 4.0, 2.0}}}}};

  const std::string page = render_report(input);

  EXPECT_THAT(page, HasSubstr("id=\"output-picker\""));
  EXPECT_THAT(page, HasSubstr("<option value=\"1\">load.1</option>"));
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">load.0</th><td>0.5000</td><td>0.5000</td>"));
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">load.1</th><td>3.5000</td><td>3.5355</td>"));
  const Json drawn = data_of(page)["residuals"];
  ASSERT_EQ(drawn.size(), 2U);
  EXPECT_EQ(drawn[1]["sample"], Json::parse("[[5.0, 2.0], [1.0, 5.0]]"));
  EXPECT_THAT(without_scripts(page), Not(HasSubstr("<h2>residual_")));
}

TEST(Report, DrawsTheResidualsOfSeveralTargetsInOneSection) {
  ReportInput input = hold_out_run();
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

  const std::string page = render_report(input);

  EXPECT_THAT(page, HasSubstr("<option value=\"0\">price</option>"));
  EXPECT_THAT(page, HasSubstr("<option value=\"2\">area.1</option>"));
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">price</th><td>0.5000</td><td>0.5000</td>"));
  const Json drawn = data_of(page)["residuals"];
  ASSERT_EQ(drawn.size(), 3U);
  EXPECT_EQ(drawn[0]["histogram"], Json::parse("[[-1.0, 1.0, 2.0]]"));
  EXPECT_EQ(drawn[2]["sample"], Json::parse("[[1.0, 5.0]]"));
  EXPECT_THAT(without_scripts(page), Not(HasSubstr("residual_sample</h2>")));
}

TEST(Report, ShowsAConfusionMatrixForEachTarget) {
  ReportInput input = hold_out_run();
  const Json counts = {{2.0, 0.0}, {1.0, 3.0}};
  input.result["tables"] = {{{"name", "kind/confusion_matrix"},
                             {"row_labels", {"a", "b"}},
                             {"column_labels", {"a", "b"}},
                             {"values", counts}},
                            {{"name", "color/confusion_matrix"},
                             {"row_labels", {"red", "blue"}},
                             {"column_labels", {"red", "blue"}},
                             {"values", counts}}};

  const std::string page = render_report(input);

  EXPECT_THAT(page, HasSubstr("Confusion matrix: kind"));
  EXPECT_THAT(page, HasSubstr("Confusion matrix: color"));
  EXPECT_THAT(page, Not(HasSubstr("kind/confusion_matrix")));
}

TEST(Report, NamesTheWeightsThatWereKeptAndTheMeasure) {
  ReportInput input = hold_out_run();
  input.result["weights"] = {{"epoch", 2}, {"chosen", "best"}, {"by", "accuracy"}};
  EXPECT_THAT(render_report(input), HasSubstr("weights of epoch 2, the best by accuracy."));
  EXPECT_THAT(render_report(input), HasSubstr("<small>kept 2</small>"));

  input.result["weights"] = {{"epoch", 3}, {"chosen", "last"}};
  EXPECT_THAT(render_report(input), HasSubstr("weights of the last epoch, 3."));
  EXPECT_THAT(render_report(input), Not(HasSubstr("<small>kept")));
}

TEST(Report, CallsNoEpochTheBestByTrainingLoss) {
  ReportInput input = hold_out_run();
  for (EpochSummary& row : input.curves[0].epochs)
    row.val_loss.reset();

  EXPECT_THAT(render_report(input), Not(HasSubstr("(best)")));
}

TEST(Report, LabelsALossThatIsNotInTheDatasUnits) {
  ReportInput input = hold_out_run();
  EXPECT_THAT(render_report(input), Not(HasSubstr("of the transformed target")));

  input.result["transformed_target"] = true;
  EXPECT_THAT(render_report(input), HasSubstr("of the transformed target"));
}

TEST(Report, OrdersMetricsAsTheDocumentDoes) {
  ReportInput input = hold_out_run();
  input.curves.clear();
  input.result["validation"]["metrics"] = {{"auc", 0.75}, {"zeal", 0.5}};
  input.result["metric_list"] = {{{"name", "zeal"}}, {{"name", "auc"}}};

  const std::string page = render_report(input);

  EXPECT_LT(page.find("<th scope=\"row\">zeal"), page.find("<th scope=\"row\">auc"));
}

TEST(Report, NamesItsTimes) {
  ReportInput input = cross_validation();
  input.result["time"] = {{"seconds", 4.5}};
  input.result["total_time_seconds"] = 6.75;

  const std::string page = render_report(input);

  EXPECT_THAT(page, HasSubstr("<span>wall time</span><b>4.5 s</b>"));
  EXPECT_THAT(page, HasSubstr("6.8 s, added up over the folds"));
}

TEST(Report, DescribesTheData) {
  ReportInput input = hold_out_run();
  input.result["data"] = Json::parse(R"({"rows": 200,
    "inputs": [{"name": "features", "shape": [2], "columns": [
      {"name": "age", "type": "number", "missing": 20},
      {"name": "town", "type": "category", "categories": 12}]}],
    "targets": [{"name": "kind", "classes": [{"name": "a", "rows": 150}, {"name": "b", "rows": 50}]}]})");

  const std::string page = render_report(input);

  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">rows</th><td>200</td>"));
  EXPECT_THAT(page, HasSubstr("<td>20 <span class=\"spread\">10 %</span></td>"));
  EXPECT_THAT(page, HasSubstr("<td>category, 12 values</td><td>none</td>"));
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">a</th><td>150</td><td>75 %</td>"));
}

TEST(Report, ShowsTheModelsPictureAndItsNodes) {
  ReportInput input = hold_out_run();
  input.result["model_info"]["architecture"] = {
      {"use", "flow"}, {"layers", {{{"use", "dense"}, {"out_features", 8}}, {{"use", "relu"}}}}};
  input.model.parts = {{"node", "layer"}, {"dense_0", "dense"}, {"  inner<b>", "gru"}};

  const std::string without_picture = render_report(input);
  EXPECT_THAT(without_picture, HasSubstr("<h2>Model graph</h2>"));
  EXPECT_THAT(without_picture, HasSubstr("<th scope=\"row\">dense_0</th><td>dense</td>"));
  EXPECT_THAT(without_picture, HasSubstr("\u00A0\u00A0inner&lt;b&gt;"));
  EXPECT_THAT(without_picture, HasSubstr("<td>flow: layers of 2</td>"));
  EXPECT_THAT(without_picture, Not(HasSubstr("<img")));

  input.model.svg = "<?xml version=\"1.0\"?>\n<svg><script>alert(1)</script></svg>";
  const std::string page = render_report(input);
  // base64 of "<svg><s…": an image, in which no script runs.
  EXPECT_THAT(page, HasSubstr("src=\"data:image/svg+xml;base64,PHN2Zz48c"));
  EXPECT_THAT(page, HasSubstr("<h2>Nodes</h2>"));
}

TEST(Report, ShowsWhatWasChosenOfAStructure) {
  ReportInput input = hold_out_run();
  EXPECT_THAT(render_report(input), Not(HasSubstr("architecture.json")));
  input.result["structures"] = Json::parse(R"([{"structure": "cell", "choices": [
    {"name": "0_1", "node": "1", "weights": {"skip": 0.25, "dense": 0.75}, "chosen": "dense"},
    {"name": "0_2", "node": "2", "weights": {"skip": 0.5, "zero": 0.5}, "chosen": null}]}])");
  const std::string html = render_report(input);
  EXPECT_THAT(html, HasSubstr("Structure: cell"));
  EXPECT_THAT(html, HasSubstr("workflow-runner run architecture.json"));
  EXPECT_THAT(html, HasSubstr("left out"));
  EXPECT_THAT(html, HasSubstr("75.0 %"));
}

TEST(Report, ShowsATableItHasNeverHeardOf) {
  ReportInput input = hold_out_run();
  input.result["tables"] = {{{"name", "calibration"},
                             {"row_labels", {"low", "high"}},
                             {"column_labels", {"share"}},
                             {"values", {{0.25}, {0.75}}}}};

  const std::string page = render_report(input);

  EXPECT_THAT(page, HasSubstr("<h2>calibration</h2>"));
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">high</th><td>0.7500</td>"));
}

TEST(Report, TakesNamesOfStrangersForTextOnly) {
  const std::string evil = "</script><script>alert(1)</script>\"'&{{script}}";
  const std::string shown =
      "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;{{script}}";
  ReportInput input = hold_out_run();
  input.name = evil;
  input.result["task"] = evil;
  input.result["choices"] = {evil};
  input.result["validation"]["metrics"][evil] = 0.5;
  input.result["validation"]["metrics"]["recall." + evil] = 0.5;
  input.result["tables"][0]["row_labels"][0] = evil;
  input.result["tables"].push_back({{"name", evil}, {"values", {{1.0}}}});
  input.result["environment"][evil] = evil;
  input.result["model_info"]["architecture"] = evil;
  input.result["extensions"] = {{evil, evil}};
  input.document["name"] = evil;
  input.curves[0].fit = evil;
  input.curves.push_back({evil, {epoch(1, 1.0, 0.5, true)}});

  const std::string page = render_report(input);

  EXPECT_THAT(page, Not(HasSubstr("alert(1)</script>")));
  EXPECT_THAT(page, HasSubstr("<title>" + shown));
  EXPECT_THAT(page, HasSubstr("<li>" + shown + "</li>"));
  EXPECT_EQ(data_of(page)["curves"][0]["fit"], evil);
}

TEST(Report, ReplacesBytesThatAreNotText) {
  ReportInput input = hold_out_run();
  input.name = "caf\xE9 \xC0\xAF ok";
  input.result["choices"] = {"\xED\xA0\x80"};

  EXPECT_THAT(render_report(input), HasSubstr("<h1>caf\uFFFD \uFFFD\uFFFD ok</h1>"));
}

TEST(Report, RunsNoScriptThatItDidNotBring) {
  const auto nonce_of = [](const std::string& page) {
    const std::size_t begin = page.find("script-src 'nonce-") + 18;
    return page.substr(begin, page.find('\'', begin) - begin);
  };
  ReportInput other = hold_out_run();
  other.name = "other";

  const std::string page = render_report(hold_out_run());

  EXPECT_GE(nonce_of(page).size(), 32U);
  EXPECT_NE(nonce_of(page), nonce_of(render_report(other)));
  EXPECT_THAT(page, Not(HasSubstr("unsafe-inline")));
  EXPECT_THAT(without_scripts(page), Not(HasSubstr(" style=")));
}

TEST(Report, CanBeReadWithoutScripts) {
  const std::string page = without_scripts(render_report(cross_validation()));

  EXPECT_THAT(page, HasSubstr("<summary>Epochs</summary>"));
  EXPECT_THAT(page, HasSubstr("2 (best)"));
  EXPECT_THAT(page, HasSubstr("<noscript>"));
  EXPECT_THAT(page, HasSubstr("&quot;use&quot;: &quot;mlp&quot;"));
}

TEST(Report, IsWrittenForARunThatHasAlmostNothing) {
  ReportInput input;
  input.name = "empty";

  const std::string page = render_report(input);

  EXPECT_THAT(page, HasSubstr("<h1>empty</h1>"));
  EXPECT_THAT(page, Not(HasSubstr("<canvas")));
}

}  // namespace
}  // namespace treadle
