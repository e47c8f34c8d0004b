// Reports as a browser shows them: the elements that the scripts make of a document.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/host/run/report.h>
#include <treadle/host/run/trend_chart.h>

#include "browser.h"
#include "report_reading.h"

namespace treadle {
namespace {

using Json = nlohmann::json;
using reading::show_page;
using reading::Shown;
using reading::WrittenInput;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kHostile = "<script>alert(1)</script>\"'&{{scripts}}";
constexpr const char* kShown = "&lt;script&gt;alert(1)&lt;/script&gt;\"'&amp;{{scripts}}";

class RenderedReport : public testing::Test {
 protected:
  void SetUp() override {
    if (reading::browser().empty())
      GTEST_SKIP() << "no Chromium is installed (apt-get install chromium)";
  }
};

std::vector<EpochSummary> epochs_of(int count) {
  std::vector<EpochSummary> rows;
  for (int i = 1; i <= count; ++i) {
    EpochSummary& row = rows.emplace_back();
    row.epoch = i;
    row.train_loss = 1.0 / i;
    row.val_loss = 1.5 / i;
    row.best = i == 2;
    row.metrics = {{"accuracy", 1 - 0.5 / i, Direction::kHigherIsBetter},
                   {kHostile, 0.5, Direction::kNone}};
  }
  return rows;
}

/// A run with a block of every kind that a run without a search has.
WrittenInput run_of(const std::string& name) {
  WrittenInput input;
  input.name = name;
  input.document = Json{{"treadle", 1}, {"name", name}};
  input.result = Json::parse(R"({
    "started_at": "2031-05-04T10:11:12Z", "task": "classification", "total_epochs": 3,
    "time": {"seconds": 125.4}, "transformed_target": true,
    "weights": {"epoch": 2, "chosen": "best", "by": "accuracy", "on": "validation"},
    "metric_list": [{"name": "accuracy", "better": "higher"}, {"name": "gone"}],
    "validation": {"loss": 1e-7, "sample_count": 12345,
      "metrics": {"accuracy": 0.90625, "gone": null, "recall.a": 0.125, "recall.b": -1234.5},
      "undefined": {"gone": "no rows of class b"}},
    "test": {"loss": 0.25, "metrics": {"accuracy": 0.8125}, "sample_count": 50},
    "baselines": [{"name": "repeat", "loss": 2, "metrics": {}, "parameter_count": 0}],
    "model_info": {"name": "mlp", "parameter_count": 1234567,
      "architecture": {"use": "flow", "layers": [{"use": "dense"}, {"use": "relu"}], "size": [3, 4]},
      "input_shape": {"features": [3, 4]}},
    "plan": {"steps": 100, "first": "4", "last": "103", "folds": [
      {"name": "fold-1", "training": [[0, 48]], "validation": [[48, 60]], "test": [[60, 80]]},
      {"name": "final", "training": [[0, 100]]}]},
    "structures": [{"structure": "cell", "choices": [
      {"name": "0_1", "weights": {"skip": 0.25, "dense": 0.75}, "chosen": null}]}],
    "prequential": {"loss": 0.5, "metrics": {"accuracy": 0.75}, "window_rows": 50,
      "recovery": {"metric": "accuracy", "threshold": 0.75, "share": 0.95},
      "metric_list": [{"name": "accuracy"}], "variances": {"loss": 0.25, "metrics": {"accuracy": 0.04}},
      "windows": [{"first_row": 0, "rows": 50, "loss": 0.5, "metrics": {"accuracy": 0.5}},
                  {"first_row": 50, "rows": 50, "loss": 0.25, "metrics": {"accuracy": null}}],
      "changes": [{"row": 50, "task": "group 1", "window": 1, "before": {"metrics": {"accuracy": 0.5}},
                   "after": {"metrics": {}}, "windows_to_threshold": null, "windows_to_share": 1}]},
    "data": {"rows": 200, "inputs": [{"name": "features", "shape": [2, 3], "columns": [
        {"name": "age", "type": "number", "missing": 20},
        {"name": "town", "type": "category", "categories": 12}]}],
      "targets": [{"name": "load", "classes": [{"name": "few", "rows": 150}, {"name": "rare", "rows": 50}]}]},
    "tables": [
      {"name": "confusion_matrix", "row_labels": ["setosa", "versicolor"],
       "column_labels": ["setosa", "versicolor"], "values": [[10, 0], [3, 7]]},
      {"name": "calibration", "row_labels": ["low", "high"], "column_labels": ["share", "rows"],
       "values": [[0.25, 1200], [0.75, 7]]},
      {"name": "residual_sample", "column_labels": ["output", "actual", "predicted"], "outputs": 2,
       "values": [[0, 1.0, 1.5], [0, 2.0, 1.5], [1, 5.0, 2.0], [1, 1.0, 5.0]]},
      {"name": "residual_histogram", "column_labels": ["output", "from", "to", "count"], "outputs": 2,
       "values": [[0, -1.0, 1.0, 2.0], [1, -4.0, 4.0, 2.0]]},
      {"name": "forecast_sample", "row_labels": ["north", "north", "south"],
       "column_labels": ["forecast", "number", "step", "actual", "predicted", "q0.1", "q0.9"],
       "values": [[0, 0, 0, 1, null, null, null], [0, 0, 1, 2, 2.5, 1, 3], [1, 0, 1, 2, 2, 1, 3]]},
      {"name": "metrics_by_step", "row_labels": ["1", "2"], "column_labels": ["mae", "mase"],
       "values": [[0.5, 1], [0.75, null]]},
      {"name": "metrics_by_series", "row_labels": ["north"], "column_labels": ["mae"],
       "values": [[0.5]]}],
    "environment": {"treadle": "0.1.0", "peak_memory_bytes": 12792627,
      "plugins": [{"id": "org.treadle.losses", "version": "1.0.0", "build_id": "ab"}]},
    "device": {"name": "gpu", "memory_peak_bytes": 640, "waits": 3, "seconds_waiting": 0.5}})");
  input.result["choices"] = {name};
  input.result["extensions"] = {{name, name}};
  input.result["environment"][name] = name;
  input.result["validation"]["metrics"][name] = 0.5;
  input.result["validation"]["metrics"]["recall." + name] = 0.5;
  input.result["tables"][0]["row_labels"][0] = name;
  input.result["tables"].push_back({{"name", name}, {"values", {{1.0}}}});
  input.curves = {{"final", epochs_of(3)}, {name, epochs_of(2)}};
  input.model.parts = {{"node", "layer"}, {"dense_0", "dense"}, {"  inner<b>", "gru"}};
  input.model.svg = "<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>";
  return input;
}

/// A search with conditions, constraints, two objectives, and trials of every state.
WrittenInput search_of(const std::string& name) {
  WrittenInput input = run_of(name);
  input.result["search"] = Json::parse(R"({
    "tuner": "tpe", "objectives": [{"name": "val_loss", "direction": "minimize"},
                                   {"name": "accuracy", "direction": "maximize"}],
    "best_trial": 5, "pareto_trials": [5, 4],
    "space": {"optimizer": {"choice": [{"use": "sgd"}, {"use": "adamw"}]},
              "optimizer.learning_rate": {"log_uniform": [1e-4, 1e-1]},
              "optimizer.momentum": {"uniform": [0, 0.9], "when": {"optimizer": [{"use": "sgd"}]}}}})");
  for (int i = 0; i < 60; ++i) {
    Json trial{{"number", i},
               {"state", i % 10 == 7   ? "pruned"
                         : i % 10 == 8 ? "failed"
                                       : "complete"},
               {"params",
                {{"optimizer", {{"use", "adamw"}}}, {"optimizer.learning_rate", 1e-4 * (i + 1)}}},
               {"values", {1.0 / (i + 1), 0.5 + i / 200.0}},
               {"constraints", {i % 5 == 3 ? 0.5 : -1.0}},
               {"intermediate", {{{"step", 1}, {"value", 2.0 / (i + 1)}}}}};
    if (i % 2 == 0) {
      trial["params"]["optimizer"] = {{"use", "sgd"}};
      trial["params"]["optimizer.momentum"] = 0.45;
    }
    if (i % 10 == 8)
      trial["error"] = name;
    input.result["search"]["trials"].push_back(std::move(trial));
  }
  return input;
}

/// These two as they are shown; several tests look at them.
const std::string& shown_run() {
  static const std::string kDom = show_page(render_report(run_of("iris").input())).dom;
  return kDom;
}
const std::string& shown_search() {
  static const std::string kDom = show_page(render_report(search_of("iris").input())).dom;
  return kDom;
}

TEST_F(RenderedReport, CausesNoErrorWhateverNamesAre) {
  for (const std::string& name : {std::string(kHostile), std::string(5000, 'x')}) {
    for (const WrittenInput& input : {run_of(name), search_of(name)}) {
      const Shown shown = show_page(render_report(input.input()));
      EXPECT_EQ(shown.console, "") << name.substr(0, 40);
      EXPECT_THAT(shown.dom, HasSubstr("<footer>Written by Treadle 0.1.0."));
    }
  }
  const Shown empty = show_page(render_report(WrittenInput{"empty", {}, {}, {}, {}}.input()));
  EXPECT_EQ(empty.console, "");
  EXPECT_THAT(empty.dom, HasSubstr("<h1>empty</h1>"));
}

TEST_F(RenderedReport, ShowsForeignNamesAsText) {
  const std::string dom =
      show_page(render_report(run_of(kHostile).input()), "document.body.append(document.title);")
          .dom;
  const std::string shown = kShown;

  EXPECT_THAT(dom, HasSubstr(shown + " · training report"));
  EXPECT_THAT(dom, HasSubstr("<h1>" + shown + "</h1>"));
  EXPECT_THAT(dom, HasSubstr("<li>" + shown + "</li>"));
  EXPECT_THAT(dom, HasSubstr("<th scope=\"row\">" + shown + "</th>"));
  EXPECT_THAT(dom, HasSubstr("  inner&lt;b&gt;</th><td class=\"left\">gru</td>"));
  EXPECT_THAT(dom.substr(dom.find("<main>")), Not(HasSubstr("<script>alert(1)")));
}

TEST_F(RenderedReport, WritesNumbersForPeople) {
  const std::string& dom = shown_run();

  EXPECT_THAT(dom, HasSubstr("<span>parameters</span><b>1\u202F234\u202F567</b>"));
  EXPECT_THAT(dom, HasSubstr("<span>wall time</span><b>2 min 05 s</b>"));
  EXPECT_THAT(dom, HasSubstr("<b>3<small> kept 2</small></b>"));
  EXPECT_THAT(dom, HasSubstr("<td>0.7500</td>"));
  EXPECT_THAT(dom, HasSubstr("<th scope=\"row\">peak memory</th><td>12.2 MiB</td>"));
  EXPECT_THAT(dom, HasSubstr("<td>640 bytes</td>"));
  EXPECT_THAT(dom, HasSubstr("<th scope=\"row\">waits of the host</th><td>3, 0.50 s</td>"));
  EXPECT_THAT(dom, HasSubstr("<td>75.0 %</td>"));
  EXPECT_THAT(dom,
              HasSubstr("<p class=\"subtitle\">2031-05-04T10:11:12Z · classification · flow</p>"));
  EXPECT_THAT(dom, HasSubstr("flow: layers of 2, size [3,4]"));
  EXPECT_THAT(dom, HasSubstr("features: 3 × 4"));
  EXPECT_THAT(dom, HasSubstr("<th scope=\"row\">low</th><td>0.2500</td><td>1\u202F200</td>"));
}

TEST_F(RenderedReport, ShowsADashAndTheReasonForAnUnknownNumber) {
  WrittenInput input = run_of("iris");
  input.result.erase("prequential");

  const std::string dom = show_page(render_report(input.input())).dom;

  EXPECT_THAT(dom, HasSubstr("<span title=\"no rows of class b\" aria-label=\"unknown: no rows of "
                             "class b\">–</span>"));
  EXPECT_THAT(dom, HasSubstr("1.000e-7"));
  EXPECT_THAT(dom, HasSubstr("−1234.5"));
}

TEST_F(RenderedReport, ShowsMeansWithDeviations) {
  WrittenInput input = run_of("iris");
  input.result.erase("prequential");
  input.result.update({{"mean_loss", 0.5},
                       {"std_loss", 0.25},
                       {"fold_results", {{{"total_epochs", 3}}, {{"total_epochs", 2}}}}});

  EXPECT_THAT(show_page(render_report(input.input())).dom,
              HasSubstr("<td>0.5000<small class=\"spread\"> ± 0.2500</small></td>"));
}

TEST_F(RenderedReport, ColoursTheConfusionMatrixByShareOfTheRow) {
  const std::string& dom = shown_run();

  EXPECT_THAT(dom, HasSubstr("<td class=\"good-5 heavy\">10<small>100 %</small></td>"));
  EXPECT_THAT(dom, HasSubstr("<td>0<small>0 %</small></td>"));
  EXPECT_THAT(dom, HasSubstr("<td class=\"bad-2\">3<small>30 %</small></td>"));
  EXPECT_THAT(dom, HasSubstr("<td class=\"good-4 heavy\">7<small>70 %</small></td>"));
}

TEST_F(RenderedReport, ShowsTheErrorOfEachOutput) {
  const std::string& dom = shown_run();

  EXPECT_THAT(dom, HasSubstr("<th scope=\"row\">load.0</th><td>0.5000</td><td>0.5000</td>"));
  EXPECT_THAT(dom, HasSubstr("<th scope=\"row\">load.1</th><td>3.5000</td><td>3.5355</td>"));
  EXPECT_THAT(dom, HasSubstr("<option value=\"1\">load.1</option>"));
}

TEST_F(RenderedReport, DescribesTheDataWithTypesMissingValuesAndClasses) {
  WrittenInput input = run_of("iris");
  const std::string& dom = shown_run();

  EXPECT_THAT(dom, HasSubstr("<th scope=\"row\">rows</th><td>200</td>"));
  EXPECT_THAT(dom, HasSubstr("<td>number</td><td>20 <span class=\"spread\">10.0 %</span></td>"));
  EXPECT_THAT(dom, HasSubstr("<td>category, 12 values</td><td>none</td>"));
  EXPECT_THAT(dom, HasSubstr("<th scope=\"row\">few</th><td>150</td><td>75.0 %</td>"));

  Json classes = Json::array();
  for (int i = 0; i < 20; ++i)
    classes.push_back({{"name", std::to_string(i)}, {"rows", 1}});
  input.result["data"] = {
      {"described_rows", 100},
      {"targets",
       {{{"name", "kind"}, {"classes", classes}},
        {{"name", "size"}, {"numbers", {{{"smallest", 1}, {"mean", 2}, {"largest", 3}}}}}}}};
  const std::string stream = show_page(render_report(input.input())).dom;

  EXPECT_THAT(stream, HasSubstr("<td>a stream</td>"));
  EXPECT_THAT(stream, HasSubstr("<td>the first 100</td>"));
  EXPECT_THAT(stream, HasSubstr("<summary>8 more classes</summary>"));
  EXPECT_THAT(stream, HasSubstr("<th scope=\"row\">size</th><td>1.0000</td><td>2.0000</td>"));
}

TEST_F(RenderedReport, ShowsChangesOfTheTaskAndTheSelectedStructure) {
  const std::string& dom = shown_run();

  EXPECT_THAT(dom, HasSubstr("<th scope=\"row\">group 1</th><td>50</td><td>0.5000</td><td>–</td>"
                             "<td>never</td><td>1</td>"));
  EXPECT_THAT(dom, HasSubstr("windows to 95.0 % of before"));
  EXPECT_THAT(dom, HasSubstr("<th scope=\"row\">accuracy</th><td>0.7500</td><td>0.2000</td>"
                             "<td>0.0400</td>"));
  EXPECT_THAT(dom, HasSubstr("<h2>Structure: cell</h2>"));
  EXPECT_THAT(dom, HasSubstr("<th scope=\"row\">0_1</th><td class=\"left\">left out</td>"
                             "<td>75.0 %</td><td>25.0 %</td>"));
  EXPECT_THAT(dom, HasSubstr("<code>workflow-runner run architecture.json</code>"));
}

TEST_F(RenderedReport, ShowsTheImportancesLargestFirst) {
  const std::string& dom = shown_search();
  const std::string card = dom.substr(dom.find("<h2>Importance</h2>"));
  const auto place = [&](const char* text) { return card.find(text); };

  EXPECT_LT(place("<th scope=\"row\">optimizer.<wbr>learning_rate<wbr></th>"),
            place("<th scope=\"row\">optimizer.<wbr>momentum<wbr> <span class=\"spread\">if "
                  "optimizer is sgd</span>"));
  EXPECT_NE(place("if optimizer is sgd"), std::string::npos);
  EXPECT_THAT(card, HasSubstr("is among the best 5 of 48."));
  EXPECT_LT(dom.find("<figcaption>optimizer.learning_rate"),
            dom.find("<figcaption>optimizer.momentum"));

  WrittenInput two = search_of("iris");
  Json& trials = two.result["search"]["trials"];
  trials = Json(std::vector<Json>(trials.begin(), trials.begin() + 2));
  EXPECT_THAT(show_page(render_report(two.input())).dom,
              HasSubstr("Fewer than three complete trials have a value."));

  WrittenInput equal = search_of("iris");
  for (Json& trial : equal.result["search"]["trials"]) {
    trial["values"] = {0.5, 0.5};
    trial["constraints"] = {-1};
  }
  EXPECT_THAT(show_page(render_report(equal.input())).dom,
              HasSubstr("Nothing sets the best trials apart."));
}

TEST_F(RenderedReport, ListsTheParetoFrontAndDrawsItForTwoObjectives) {
  WrittenInput input = search_of("iris");
  const std::string& of_two = shown_search();
  for (Json& trial : input.result["search"]["trials"])
    trial["values"].push_back(7);
  input.result["search"]["objectives"].push_back({{"name", "size"}, {"direction", "minimize"}});
  const std::string of_three = show_page(render_report(input.input())).dom;

  EXPECT_THAT(of_two, HasSubstr("aria-label=\"Pareto front\""));
  EXPECT_THAT(of_two, HasSubstr("<h2>Trials of the Pareto front</h2>"));
  EXPECT_THAT(of_two, HasSubstr("<th scope=\"row\">5</th><td class=\"left\">complete</td>"
                                "<td>0.1667</td><td>0.5250</td><td>none</td>"));
  EXPECT_THAT(of_three, Not(HasSubstr("aria-label=\"Pareto front\"")));
  EXPECT_THAT(of_three, HasSubstr("<h2>Pareto front</h2>"));
}

TEST_F(RenderedReport, ShowsThePictureOfTheModelAsAnImageInWhichNoScriptRuns) {
  EXPECT_THAT(shown_run(), HasSubstr("<img class=\"model\" alt=\"The model's graph\" "
                                     "src=\"data:image/svg+xml,%3Csvg"));
}

TEST_F(RenderedReport, DrawsACanvasWithALabelForEveryChart) {
  const Shown shown = show_page(render_report(search_of("iris").input()), R"(
    const labels = [...document.querySelectorAll("canvas")].filter((canvas) =>
      canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((byte) => byte))
      .map((canvas) => canvas.getAttribute("aria-label"));
    document.body.append("drawn: " + labels.join(", "));)");

  const std::string drawn = shown.dom.substr(shown.dom.rfind("drawn: "));
  for (const char* label :
       {"Loss dashed: training", "Metric", "Forecasts", "By step of the horizon",
        "Predicted and actual", "Residuals", "in windows of 50 rows", "Optimization history",
        "Pareto front", "The values of each complete trial as a line",
        "Learning curves of the trials", "Objective by optimizer.momentum"})
    EXPECT_THAT(drawn, HasSubstr(label));
}

TEST_F(RenderedReport, FollowsThePickersSwitchesAndButtons) {
  const Shown shown = show_page(render_report(search_of("iris").input()), R"(
    for (const select of document.querySelectorAll("select")) {
      select.value = String(select.options.length - 1);
      select.dispatchEvent(new Event("change"));
    }
    const objectives = [...document.querySelectorAll("select[aria-label=objective]")];
    document.body.append("objectives: " + objectives.map((one) => one.value).join(" ") + ".");
    for (const button of document.querySelectorAll("button")) button.click();
    document.querySelectorAll("summary").forEach((summary) => summary.click());
    window.dispatchEvent(new Event("beforeprint"));
    window.dispatchEvent(new Event("afterprint"));)");

  EXPECT_EQ(shown.console, "");
  EXPECT_THAT(shown.dom, HasSubstr("objectives: 1 1 1 1."));
  EXPECT_THAT(shown.dom, HasSubstr("aria-pressed=\"false\""));
  EXPECT_THAT(shown.dom, HasSubstr("Scale: logarithmic"));
  EXPECT_THAT(shown.dom, HasSubstr("Theme: light"));
}

TEST_F(RenderedReport, ShowsWhatIsFoldedOnceItIsOpened) {
  const std::string page = render_report(search_of("iris").input());
  const std::string open =
      R"(document.querySelectorAll("summary").forEach((summary) => summary.click());)";

  const std::string& folded = shown_search();
  const std::string opened = show_page(page, open).dom;

  EXPECT_THAT(folded, HasSubstr("<summary>10 more trials</summary>"));
  EXPECT_THAT(folded, HasSubstr("<summary>1 plugin</summary>"));
  EXPECT_THAT(folded, HasSubstr("Hollow ones violate a constraint."));
  EXPECT_THAT(folded, Not(HasSubstr("2 (best)")));
  EXPECT_THAT(opened, HasSubstr("<th scope=\"row\">final</th><td>2 (best)</td><td>0.5000</td>"));
  EXPECT_THAT(opened, HasSubstr("org.treadle.losses"));
  EXPECT_THAT(opened, HasSubstr("<pre>"));
}

TEST_F(RenderedReport, SavesAllTrialsWithAllDigitsAsCsv) {
  const Shown shown = show_page(render_report(search_of("iris").input()), R"(
    URL.createObjectURL = (blob) => { blob.text().then((text) => document.body.append("saved: " + text + "|")); return "#"; };
    [...document.querySelectorAll("button")].find((one) => one.textContent === "Save as CSV").click();)");
  const std::string saved = shown.dom.substr(shown.dom.rfind("saved: "));

  EXPECT_THAT(saved, testing::StartsWith(
                         "saved: trial,state,val_loss,accuracy,feasible,epochs,optimizer,"
                         "optimizer.learning_rate,optimizer.momentum,error\n"
                         "0,complete,1,0.5,true,1,\"{\"\"use\"\":\"\"sgd\"\"}\",0.0001,0.45,\n"
                         "1,complete,0.5,0.505,true,"));
  EXPECT_THAT(saved, HasSubstr("\n2,complete,0.3333333333333333,0.51,"));
  EXPECT_THAT(saved, HasSubstr("\n58,failed,,,false,"));
}

TEST_F(RenderedReport, SelectsTrialsByDraggingAlongAnAxisOfTheParallelCoordinates) {
  const Shown shown = show_page(render_report(search_of("iris").input()), R"(
    const canvas = document.querySelector(".parallel canvas");
    canvas.setPointerCapture = () => {};
    const box = canvas.getBoundingClientRect();
    const point = (name, x, y) => canvas.dispatchEvent(new PointerEvent(name, { clientX: box.left + x, clientY: box.top + y, pointerId: 1 }));
    const clear = [...document.querySelectorAll("button")].find((one) => one.textContent === "Show all");
    const states = [clear.hidden];
    for (let y = 60; y < 300; y += 3) point("pointermove", 150, y);
    point("pointerdown", 56, 60);
    point("pointermove", 56, 160);
    point("pointerup", 56, 160);
    states.push(clear.hidden);
    clear.click();
    states.push(clear.hidden);
    point("pointerdown", 56, 60);
    point("pointerup", 56, 60);
    states.push(clear.hidden);
    document.body.append("hidden: " + states.join(" ") + ", hint: " + document.querySelector(".hint").textContent);)");

  EXPECT_EQ(shown.console, "");
  EXPECT_THAT(shown.dom, HasSubstr("hidden: true false true true, hint: trial "));
}

TEST_F(RenderedReport, DrawsTrends) {
  TrendRecorder recorder;
  for (const double value : {1.5, 0.5}) {
    recorder.record(kHostile, value);
    recorder.flush();
  }

  const Shown shown = show_page(render_trends("by hand", recorder));

  EXPECT_EQ(shown.console, "");
  EXPECT_THAT(shown.dom, HasSubstr("<h1>by hand</h1>"));
  EXPECT_THAT(shown.dom, HasSubstr("<canvas role=\"img\" aria-label=\"Trends\""));
}

}  // namespace
}  // namespace treadle
