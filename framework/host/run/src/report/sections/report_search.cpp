#include "report/sections/report_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

#include "report/report_html.h"
#include "result/json_path.h"

#include <treadle/core/components/state_dict.h>

namespace treadle::report {
namespace {

using Json = nlohmann::json;
using State = SearchRecord::State;
using Row = std::vector<std::string>;
using Rows = std::vector<Row>;

constexpr std::size_t kShownTrials = 50;
/// The distribution of fewer best trials says little (the advice of Optuna's documentation).
constexpr std::size_t kEnoughBest = 5;
/// Of all learning curves together: what a page draws quickly and a mail carries.
constexpr std::size_t kMostCurvePoints = 60000;
constexpr std::size_t kFewestPointsPerCurve = 12;
constexpr std::string_view kTableHasNumbers =
    "This chart needs JavaScript; the table of trials has its numbers.";

std::string note(const std::string& text) {
  return "<p class=\"note\">" + text + "</p>";
}

std::string script_note(const std::string& text) {
  return "<p class=\"note needs-script\" hidden>" + text + "</p>";
}

std::string spread(const std::string& text) {
  return " <span class=\"spread\">" + text + "</span>";
}

std::string plural(std::size_t count, std::string_view word) {
  return std::to_string(count) + " " + std::string(word) + (count == 1 ? "" : "s");
}

/// The first `most` bytes at a border of characters.
std::string shortened(std::string text, std::size_t most) {
  if (text.size() <= most)
    return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U)
    --most;
  text.resize(most);
  return text + "…";
}

/// A value of a dimension as people write it: text without quotes, a component as "sgd" or "sgd:
/// momentum 0.9".
std::string value_text(const Json& value) {
  if (value.is_string())
    return value.get<std::string>();
  if (value.is_number_float()) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.6g", value.get<double>());
    return text.data();
  }
  const std::string component = internal::text_at_path(value, {"use"});
  if (component.empty())
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string parameters;
  for (const auto& [key, parameter] : value.items()) {
    if (key != "use")
      parameters += (parameters.empty() ? ": " : ", ") + key + " " + value_text(parameter);
  }
  return component + parameters;
}

/// A path that may be broken behind its dots.
std::string breakable(const std::string& path) {
  std::string text = html::escape(path);
  for (std::size_t dot = text.find('.'); dot != std::string::npos; dot = text.find('.', dot + 1))
    text.insert(dot + 1, "<wbr>");
  return text;
}

std::string cell_text(const Json& value) {
  constexpr std::size_t kMost = 60;
  return html::escape(shortened(value_text(value), kMost));
}

std::string direction_text(const SearchRecord::Objective& objective) {
  return html::escape(objective.name) + spread(objective.maximizes ? "maximized" : "minimized");
}

std::string scale_button(const std::string& chart) {
  return "<button class=\"chip\" id=\"" + chart + "-scale\" type=\"button\">Scale: linear</button>";
}

/// A card whose title has controls beside it.
std::string controlled_card(std::string_view title, const std::string& controls,
                            const std::string& content) {
  return "<section class=\"card\"><div class=\"chart-head\"><h2>" + std::string(title) +
         "</h2><div class=\"chips needs-script\" hidden>" + controls + "</div></div>\n" + content +
         "</section>\n";
}

std::string without_script() {
  return "<noscript>" + note(std::string(kTableHasNumbers)) + "</noscript>";
}

/// Complete trials whose values are in the space.
std::vector<std::size_t> compared_trials(const SearchRecord& search) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < search.trials.size(); ++i) {
    if (search.trials[i].is_complete() && search.trials[i].point)
      places.push_back(i);
  }
  return places;
}

/// The losses of trials, with those that break a constraint behind all that break none.
std::vector<double> ordered_losses(const SearchRecord& search, std::size_t objective,
                                   std::span<const std::size_t> places) {
  double worst = 0;
  for (const std::size_t place : places) {
    const double loss = search.loss(place, objective);
    if (std::isfinite(loss))
      worst = std::max(worst, loss);
  }
  std::vector<double> losses;
  for (const std::size_t place : places) {
    const SearchRecord::Trial& trial = search.trials[place];
    const double loss = search.loss(place, objective);
    losses.push_back(std::isfinite(loss) && !trial.is_feasible() ? worst + trial.violation : loss);
  }
  return losses;
}

std::vector<Importances> importances_of(const SearchRecord& search) {
  const std::vector<std::size_t> places = compared_trials(search);
  std::vector<Importances> importances;
  if (!search.space || search.space->size() == 0 || places.empty())
    return importances;
  std::vector<Point> points;
  for (const std::size_t place : places)
    points.push_back(*search.trials[place].point);
  for (std::size_t i = 0; i < search.objectives.size(); ++i)
    importances.push_back(ped_anova(*search.space, points, ordered_losses(search, i, places)));
  return importances;
}

std::vector<std::size_t> largest_first(const std::vector<double>& shares) {
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return shares[a] > shares[b]; });
  return order;
}

/// "60: 48 complete, 9 pruned, 3 failed".
std::string trials_text(const SearchRecord& search) {
  struct Group {
    State state;
    std::string_view name;
  };
  constexpr Group kGroups[] = {{State::kComplete, "complete"},   {State::kPruned, "pruned"},
                               {State::kPaused, "paused"},       {State::kFailed, "failed"},
                               {State::kCancelled, "cancelled"}, {State::kOther, "other"}};
  std::string text;
  for (const Group& group : kGroups) {
    if (const std::size_t count = search.count(group.state); count > 0)
      text += (text.empty() ? ": " : ", ") + std::to_string(count) + " " + std::string(group.name);
  }
  const auto infeasible = static_cast<std::size_t>(std::count_if(
      search.trials.begin(), search.trials.end(), [](const SearchRecord::Trial& trial) {
        return trial.is_complete() && !trial.is_feasible();
      }));
  if (infeasible > 0)
    text += spread(std::to_string(infeasible) + " of the complete ones break a constraint");
  return std::to_string(search.trials.size()) + text;
}

std::string values_text(const SearchRecord& search, std::size_t place) {
  std::string text;
  for (std::size_t i = 0; i < search.objectives.size(); ++i) {
    text += (text.empty() ? "" : ", ") + html::escape(search.objectives[i].name) + " " +
            html::number(search.trials[place].values[i]);
  }
  return text;
}

/// "if optimizer is sgd or adamw".
std::string condition_text(const SearchSpace& space, const Dimension& dimension) {
  const Dimension& parent = space[*space.find(dimension.when->parent)];
  std::string values;
  for (const std::size_t choice : dimension.when->choices)
    values += (values.empty() ? "" : " or ") + cell_text(parent.choices[choice]);
  return "if " + html::escape(parent.name) + " is " + values;
}

/// A bar that fills its cell at 1.
std::string bar(double share) {
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(),
                "<svg class=\"bar\" viewBox=\"0 0 1000 12\" preserveAspectRatio=\"none\" "
                "aria-hidden=\"true\"><rect width=\"%.1f\" height=\"12\"/></svg>",
                1000 * share);
  return text.data();
}

/// The dimensions; without a space all paths that occur.
std::vector<std::string> paths_of(const SearchRecord& search) {
  std::vector<std::string> paths;
  if (search.space) {
    for (const Dimension& dimension : search.space->dimensions())
      paths.push_back(dimension.name);
    return paths;
  }
  for (const SearchRecord::Trial& trial : search.trials) {
    if (!trial.params.is_object())
      continue;
    for (const auto& [path, unused] : trial.params.items())
      paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

const Json& param_of(const SearchRecord::Trial& trial, const std::string& path) {
  static const Json kNothing;
  if (!trial.params.is_object())
    return kNothing;
  const auto found = trial.params.find(path);
  return found == trial.params.end() ? kNothing : *found;
}

/// Makes tables of trials, with a column for everything that any trial of the search has.
class TrialTable {
 public:
  explicit TrialTable(const SearchRecord& search) : search_(search), paths_(paths_of(search)) {
    for (const SearchRecord::Trial& trial : search.trials) {
      has_epochs_ = has_epochs_ || trial.epochs.has_value();
      has_errors_ = has_errors_ || !trial.error.empty();
    }
  }

  std::string of(std::span<const std::size_t> places) const {
    Rows rows;
    for (const std::size_t place : places)
      rows.push_back(row(search_.trials[place]));
    return html::scrolling(html::table("trials", head(), rows), true);
  }

 private:
  Row head() const {
    Row cells{"trial", "state"};
    for (const SearchRecord::Objective& objective : search_.objectives)
      cells.push_back(html::escape(objective.name));
    if (search_.has_constraints)
      cells.emplace_back("violation");
    if (has_epochs_)
      cells.emplace_back("epochs");
    for (const std::string& path : paths_)
      cells.push_back(html::escape(path));
    if (has_errors_)
      cells.emplace_back("error");
    return cells;
  }

  Row row(const SearchRecord::Trial& trial) const {
    Row cells{std::to_string(trial.number), html::escape(trial.state_name)};
    for (const double value : trial.values)
      cells.push_back(html::number(value));
    if (search_.has_constraints)
      cells.push_back(trial.is_feasible() ? "none" : html::number(trial.violation));
    if (has_epochs_)
      cells.push_back(trial.epochs ? html::count(*trial.epochs) : "");
    for (const std::string& path : paths_) {
      const Json& value = param_of(trial, path);
      cells.push_back(value.is_null() ? "" : cell_text(value));
    }
    if (has_errors_)
      cells.push_back("<span class=\"words\">" + html::escape(trial.error) + "</span>");
    return cells;
  }

  const SearchRecord& search_;
  std::vector<std::string> paths_;
  bool has_epochs_ = false;
  bool has_errors_ = false;
};

/// A column of all trials. What is not finite becomes null when it is written.
template <typename Read>
Json column(const SearchRecord& search, const Read& read) {
  Json values = Json::array();
  for (const SearchRecord::Trial& trial : search.trials)
    values.push_back(read(trial));
  return values;
}

/// A range, or the choices and which of them each trial has.
Json dimension_data(const SearchRecord& search, std::size_t d) {
  const Dimension& dimension = (*search.space)[d];
  Json data{{"log", dimension.log},
            {"integer", dimension.kind == Dimension::Kind::kInteger},
            {"conditional", dimension.when.has_value()}};
  if (dimension.kind != Dimension::Kind::kChoice) {
    data["low"] = dimension.low;
    data["high"] = dimension.high;
    return data;
  }
  data["indices"] = column(search, [&](const SearchRecord::Trial& trial) {
    return trial.point ? Json((*trial.point)[d]) : Json();
  });
  data["choices"] = Json::array();
  for (const Json& choice : dimension.choices)
    data["choices"].push_back(value_text(choice));
  return data;
}

/// The trials that have a curve: every n-th point and the last.
Json curves_data(const std::vector<SearchRecord::Curve>& curves) {
  const auto count =
      std::count_if(curves.begin(), curves.end(),
                    [](const SearchRecord::Curve& curve) { return !curve.epochs.empty(); });
  const std::size_t most =
      std::max(kFewestPointsPerCurve,
               kMostCurvePoints / static_cast<std::size_t>(std::max<std::ptrdiff_t>(count, 1)));
  Json data = Json::array();
  for (std::size_t trial = 0; trial < curves.size(); ++trial) {
    const SearchRecord::Curve& curve = curves[trial];
    const std::size_t points = curve.epochs.size();
    if (points == 0)
      continue;
    const std::size_t stride = (points + most - 1) / most;
    Json epochs = Json::array();
    Json values = Json::array();
    for (std::size_t i = 0; i < points; ++i) {
      if (i % stride != 0 && i + 1 != points)
        continue;
      epochs.push_back(curve.epochs[i]);
      values.push_back(curve.values[i]);
    }
    data.push_back(
        {{"trial", trial}, {"epochs", std::move(epochs)}, {"values", std::move(values)}});
  }
  return data;
}

}  // namespace

SearchReport::SearchReport(SearchRecord search, const ReportInput& input)
    : search_(std::move(search)), importances_(importances_of(search_)) {
  if (!importances_.empty())
    order_ = largest_first(importances_.front().shares);
  for (std::size_t i = 0; i < search_.objectives.size(); ++i)
    curves_.push_back(trial_curves(search_, input, i));
}

bool SearchReport::has_curves() const {
  return std::any_of(
      curves_.begin(), curves_.end(), [](const std::vector<SearchRecord::Curve>& curves) {
        return std::any_of(curves.begin(), curves.end(),
                           [](const SearchRecord::Curve& curve) { return !curve.epochs.empty(); });
      });
}

/// A chart shows one objective at a time; the script keeps the choice of all charts equal.
std::string SearchReport::objective_picker(const std::string& chart) const {
  if (!has_several_objectives())
    return {};
  std::vector<std::string> names;
  for (const SearchRecord::Objective& objective : search_.objectives)
    names.push_back(objective.name);
  return html::picker(chart + "-objective", "objective", names);
}

std::string SearchReport::overview_card() const {
  Rows rows{{"trials", trials_text(search_)}};
  if (!search_.ended.empty())
    rows.push_back({"ended", html::escape(search_.ended)});
  std::string objectives;
  for (const SearchRecord::Objective& objective : search_.objectives)
    objectives += (objectives.empty() ? "" : ", ") + direction_text(objective);
  if (!objectives.empty())
    rows.push_back({has_several_objectives() ? "objectives" : "objective", objectives});
  if (has_several_objectives() && !search_.pareto.empty())
    rows.push_back({"Pareto front", plural(search_.pareto.size(), "trial")});
  if (search_.best && !search_.objectives.empty()) {
    rows.push_back({has_several_objectives() ? "the model's trial" : "best trial",
                    std::to_string(search_.trials[*search_.best].number) + ": " +
                        values_text(search_, *search_.best)});
  }
  if (search_.ensemble) {
    std::string members;
    for (const std::int64_t trial : search_.ensemble->members)
      members += (members.empty() ? "trials " : ", ") + std::to_string(trial);
    rows.push_back({"ensemble", members + ": " + html::escape(search_.ensemble->objective) + " " +
                                    html::number(search_.ensemble->validation)});
  }
  if (!search_.tuner.empty())
    rows.push_back({"tuner", html::escape(search_.tuner)});
  if (!search_.pruner.empty())
    rows.push_back({"pruner", html::escape(search_.pruner)});
  std::string notes =
      note(search_.count(State::kComplete) == 0
               ? "No trial is complete, so there are no values to compare."
               : "Trials were compared by their validation rows, so the best value is "
                 "optimistic. The result above is of the training after the search, which "
                 "draws other random numbers than the trial did.");
  if (search_.ensemble) {
    notes += note(
        "The ensemble predicts in place of the best trial: predict, evaluate and runs export use "
        "it. "
        "The result above, and the model in this report, are those of the best trial alone.");
  }
  if (search_.is_asynchronous) {
    notes += note(
        "The search was asynchronous: its trials depend on which of them ended first. Another run "
        "of the document may make other ones.");
  }
  return html::card("Search", html::table("text facts", {}, rows) + notes);
}

std::string SearchReport::best_card() const {
  if (!search_.best)
    return {};
  const SearchRecord::Trial& trial = search_.trials[*search_.best];
  Rows rows;
  if (trial.params.is_object()) {
    for (const auto& [path, value] : trial.params.items())
      rows.push_back({breakable(path), "<code>" + html::escape(value_text(value)) + "</code>"});
  }
  return html::card(
      (has_several_objectives() ? "Values of trial " : "Best values: trial ") +
          std::to_string(trial.number),
      html::table("text facts paths", {}, rows) +
          note("<code>best.json</code> beside this file is the document with these values: "
               "<code>workflow-runner run best.json</code> trains the model of this trial again, "
               "<code>--set training.epochs=100</code> trains it longer."));
}

std::string SearchReport::history_card() const {
  if (search_.trials.empty() || search_.objectives.empty())
    return {};
  const std::string id = "search-history-chart";
  return html::chart_card("Optimization history", id, objective_picker(id) + scale_button(id),
                          kTableHasNumbers);
}

std::string SearchReport::importance_table(const Importances& importances) const {
  std::string rows;
  for (const std::size_t d : largest_first(importances.shares)) {
    const Dimension& dimension = (*search_.space)[d];
    const double share = importances.shares[d];
    rows += "<tr><th scope=\"row\">" + breakable(dimension.name) +
            (dimension.when ? spread(condition_text(*search_.space, dimension)) : "") +
            "</th><td>" + bar(share) + "</td><td>" + html::share(share) + "</td></tr>\n";
  }
  return "<table class=\"bars\"><tbody>" + rows + "</tbody></table>";
}

std::string SearchReport::importance_card() const {
  std::string text;
  for (std::size_t i = 0; i < importances_.size(); ++i) {
    const Importances& one = importances_[i];
    if (has_several_objectives())
      text += "<h3>" + direction_text(search_.objectives[i]) + "</h3>";
    if (one.best == 0) {
      text += note("Fewer than three complete trials have a value.");
    } else if (std::all_of(one.shares.begin(), one.shares.end(),
                           [](double share) { return share == 0; })) {
      text += note("Nothing sets the best trials apart.");
    } else {
      text += importance_table(one) +
              note("The share of each value in whether a trial is among the best " +
                   std::to_string(one.best) + " of " + std::to_string(one.trials) + "." +
                   (one.best < kEnoughBest ? " So few say little: take it as a guess." : ""));
    }
  }
  return html::card("Importance",
                    text + note("PED-ANOVA (Watanabe et al. 2023) of the complete trials, which "
                                "looks at each value by itself."));
}

std::string SearchReport::pareto_cards() const {
  if (!has_several_objectives() || search_.pareto.empty())
    return {};
  const std::string content =
      TrialTable(search_).of(search_.pareto) +
      note("No other trial is as good in every objective and better in one.");
  if (search_.objectives.size() > 2)
    return html::card("Pareto front", content);
  return html::chart_card("Pareto front", "pareto-chart", "", kTableHasNumbers) +
         html::card("Trials of the Pareto front", content);
}

std::string SearchReport::parallel_card() const {
  const std::string id = "parallel-chart";
  return controlled_card(
      "Parallel coordinates",
      "<button class=\"chip\" id=\"parallel-clear\" type=\"button\" hidden>Show all</button>" +
          objective_picker(id),
      "<div class=\"scroll needs-script\" hidden><div class=\"chart parallel\"><canvas id=\"" + id +
          "\" role=\"img\" aria-label=\"The values of each complete trial as a line; the table "
          "of trials has them as numbers\"></canvas></div></div>\n" +
          script_note("A line is a complete trial; the stronger its color, the better. Drag along "
                      "an axis to select a range.") +
          "<div class=\"hint\" id=\"parallel-hint\" hidden></div>" + without_script());
}

std::string SearchReport::slices_card() const {
  std::string figures;
  for (const std::size_t d : order_) {
    const std::string name = html::escape((*search_.space)[d].name);
    figures += "<figure><figcaption>" + name +
               "</figcaption><div class=\"chart slice\"><canvas id=\"slice-" + std::to_string(d) +
               "\" role=\"img\" aria-label=\"Objective by " + name +
               "\"></canvas></div></figure>\n";
  }
  return controlled_card(
      "Slices", objective_picker("slices") + scale_button("slices"),
      "<div class=\"slices needs-script\" hidden>\n" + figures + "</div>" +
          script_note(
              std::string("A point is a complete trial; the stronger its color, the later.") +
              (search_.has_constraints ? " Hollow ones break a constraint." : "")) +
          without_script());
}

std::string SearchReport::learning_card() const {
  const std::string id = "learning-chart";
  return html::chart_card("Learning curves of the trials", id,
                          objective_picker(id) + scale_button(id),
                          "This chart needs JavaScript; history.csv has its numbers.");
}

std::string SearchReport::trials_card() const {
  if (search_.trials.empty())
    return {};
  const std::vector<std::size_t> order = best_first(search_);
  const std::span<const std::size_t> all(order);
  const std::size_t shown = std::min(kShownTrials, order.size());
  const TrialTable table(search_);
  std::string content = table.of(all.first(shown));
  if (shown < order.size()) {
    content += "<details class=\"inner\"><summary>" + plural(order.size() - shown, "more trial") +
               "</summary>" + table.of(all.subspan(shown)) + "</details>";
  }
  return controlled_card(
      "Trials", "<button class=\"chip\" id=\"trials-csv\" type=\"button\">Save as CSV</button>",
      content);
}

std::string SearchReport::html() const {
  std::string text = html::side_by_side(overview_card() + best_card());
  if (importances_.empty()) {
    text += history_card() + pareto_cards();
  } else {
    text += html::side_by_side(history_card() + importance_card()) + pareto_cards() +
            parallel_card() + slices_card();
  }
  return text + (has_curves() ? learning_card() : "") + trials_card();
}

Json SearchReport::data() const {
  using Trial = SearchRecord::Trial;
  Json data{{"objectives", Json::array()},
            {"best", search_.best ? Json(*search_.best) : Json()},
            {"pareto", search_.pareto},
            {"numbers", column(search_, [](const Trial& trial) { return trial.number; })},
            {"states", column(search_, [](const Trial& trial) { return trial.state_name; })},
            {"feasible", column(search_, [](const Trial& trial) { return trial.is_feasible(); })},
            {"placed", column(search_, [](const Trial& trial) { return trial.point.has_value(); })},
            {"epochs", column(search_,
                              [](const Trial& trial) {
                                return trial.epochs ? Json(*trial.epochs) : Json();
                              })},
            {"errors", column(search_, [](const Trial& trial) { return trial.error; })},
            {"values", Json::array()},
            {"paths", paths_of(search_)},
            {"params", Json::array()},
            {"dimensions", Json::array()},
            {"order", order_},
            {"curves", Json::array()}};
  for (std::size_t i = 0; i < search_.objectives.size(); ++i) {
    const SearchRecord::Objective& objective = search_.objectives[i];
    data["objectives"].push_back({{"name", objective.name}, {"maximizes", objective.maximizes}});
    data["values"].push_back(column(search_, [&](const Trial& trial) { return trial.values[i]; }));
    data["curves"].push_back(curves_data(curves_[i]));
  }
  for (const std::string& path : paths_of(search_))
    data["params"].push_back(
        column(search_, [&](const Trial& trial) { return param_of(trial, path); }));
  if (!importances_.empty()) {
    for (std::size_t d = 0; d < search_.space->size(); ++d)
      data["dimensions"].push_back(dimension_data(search_, d));
  }
  return data;
}

}  // namespace treadle::report
