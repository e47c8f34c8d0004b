#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "report/ped_anova.h"
#include "report/sections/sections.h"
#include "result/json_path.h"

namespace treadle::report {
namespace {

using internal::at_path;
using internal::text_at_path;
using Trial = SearchRecord::Trial;
using Objective = SearchResult::Objective;

/// Of all learning curves together, so that the page stays small and quick.
constexpr std::size_t kMostCurvePoints = 60000;
constexpr std::size_t kFewestPointsPerCurve = 12;

/// Appends to a list that commas separate.
void enumerate(List& text, const List& more) {
  if (!text.empty())
    text.emplace_back(", ");
  append(text, more);
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
    const Trial& trial = search.trials[place];
    const double loss = search.loss(place, objective);
    losses.push_back(std::isfinite(loss) && !trial.is_feasible() ? worst + trial.violation : loss);
  }
  return losses;
}

/// By objective; empty where no complete trial has values in the space.
Json importances_of(const SearchRecord& search) {
  std::vector<std::size_t> places;
  std::vector<Point> points;
  for (std::size_t i = 0; i < search.trials.size(); ++i) {
    if (search.trials[i].is_complete() && search.trials[i].point) {
      places.push_back(i);
      points.push_back(*search.trials[i].point);
    }
  }
  Json importances = Json::array();
  for (std::size_t i = 0; i < search.objectives().size(); ++i) {
    if (!search.space || search.space->size() == 0 || places.empty())
      break;
    const Importances one = ped_anova(*search.space, points, ordered_losses(search, i, places));
    importances.push_back({{"shares", one.shares}, {"trials", one.trials}, {"best", one.best}});
  }
  return importances;
}

/// "60: 48 complete, 9 pruned, 3 failed".
Json trials_by_state(const SearchRecord& search) {
  std::vector<std::pair<std::string, std::size_t>> states;
  std::size_t infeasible = 0;
  for (const std::size_t place : best_first(search)) {
    const Trial& trial = search.trials[place];
    const auto known = std::find_if(states.begin(), states.end(), [&](const auto& one) {
      return one.first == trial.result->state;
    });
    if (known == states.end())
      states.emplace_back(trial.result->state, 1);
    else
      ++known->second;
    infeasible += trial.is_complete() && !trial.is_feasible() ? 1 : 0;
  }
  List counts;
  for (const auto& [state, trials] : states)
    enumerate(counts, {as("count", trials), " " + state});
  List text{as("count", search.trials.size()), states.empty() ? "" : ": ", std::move(counts)};
  if (infeasible > 0) {
    append(text, {" ", as("soft", List{as("count", infeasible),
                                       " of the complete ones violate a constraint"})});
  }
  return text;
}

/// "31: val_loss 0.25"; null without a best trial.
Json best_value(const SearchRecord& search) {
  if (!search.best || search.objectives().empty())
    return {};
  const Trial& best = search.trials[*search.best];
  List values;
  for (std::size_t i = 0; i < search.objectives().size(); ++i)
    enumerate(values, {search.objectives()[i].name + " ", best.values[i]});
  return List{std::to_string(best.result->number) + ": ", std::move(values)};
}

/// "trials 1, 3: log_loss 0.125"; null without an ensemble.
Json members_of(const std::optional<EnsembleResult>& ensemble) {
  if (!ensemble)
    return {};
  List members;
  for (const EnsembleResult::Member& member : ensemble->members)
    enumerate(members, {as("count", member.trial)});
  return List{"trials ", std::move(members), ": " + ensemble->objective + " ",
              ensemble->validation};
}

/// "aleatoric 0.31, epistemic 0.04"; null without an ensemble.
Json uncertainty_of(const std::optional<EnsembleResult>& ensemble) {
  if (!ensemble || !ensemble->uncertainty)
    return {};
  List parts;
  for (const auto& [name, value] : {std::pair{"aleatoric ", ensemble->uncertainty->aleatoric},
                                    std::pair{"epistemic ", ensemble->uncertainty->epistemic}}) {
    if (value)
      enumerate(parts, {name, *value});
  }
  return parts;
}

/// A row of facts is left out where its value is null.
Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json overview_card(const SearchRecord& search) {
  List objectives;
  for (const Objective& one : search.objectives())
    enumerate(objectives, {one.name + " ", as("soft", one.maximizes ? "maximized" : "minimized")});
  const bool several = search.objectives().size() > 1;
  const List on_front{as("count", search.pareto.size()),
                      search.pareto.size() == 1 ? " trial" : " trials"};
  const Json members = members_of(search.result->ensemble);
  const bool has_values = std::any_of(search.trials.begin(), search.trials.end(),
                                      [](const Trial& trial) { return trial.is_complete(); });
  List rows{
      List{"trials", trials_by_state(search)},
      List{"ended", text_or_null(search.result->ended.text)},
      List{several ? "objectives" : "objective", objectives.empty() ? Json() : Json(objectives)},
      List{"Pareto front", several && !search.pareto.empty() ? Json(on_front) : Json()},
      List{several ? "the model's trial" : "best trial", best_value(search)},
      List{"ensemble", members},
      List{"its uncertainty", uncertainty_of(search.result->ensemble)},
      List{"tuner", text_or_null(search.result->tuner)},
      List{"pruner", text_or_null(search.result->pruner)}};
  List blocks{
      facts(std::move(rows)),
      note(has_values ? "Trials were compared by their validation rows, so the best value is "
                        "optimistic. The result above is of the training after the search, which "
                        "draws other random numbers than the trial did."
                      : "No trial is complete, so there are no values to compare.")};
  if (!members.is_null()) {
    const bool is_tested = !search.result->ensemble->best_trial_test.empty();
    blocks.push_back(
        note(std::string("The ensemble predicts in place of the best trial: predict, evaluate and "
                         "runs export use it. ") +
             (is_tested ? "The test rows above measure the ensemble. Everything else, and the "
                          "model in this report, are those of the best trial alone."
                        : "The result above, and the model in this report, are those of the best "
                          "trial alone.")));
  }
  if (search.result->asynchronous) {
    blocks.push_back(
        note("The search was asynchronous: its trials depend on which of them ended first. "
             "Another run of the document may make other ones."));
  }
  return card("Search", std::move(blocks));
}

Json best_card(const SearchRecord& search) {
  if (!search.best)
    return {};
  const Trial& trial = search.trials[*search.best];
  List rows;
  const Json& params = trial.result->params;
  for (const auto& [name, value] : params.items())
    rows.push_back(List{as("path", name), as("code", as("setting", value))});
  return card(
      (search.objectives().size() > 1 ? "Values of trial " : "Best values: trial ") +
          std::to_string(trial.result->number),
      {facts(std::move(rows)),
       note(List{as("code", "best.json"), " beside this file is the document with these values: ",
                 as("code", "workflow-runner run best.json"),
                 " trains the model of this trial again, ", as("code", "--set training.epochs=100"),
                 " trains it longer."})});
}

/// The dimensions; without a space all paths that occur.
std::vector<std::string> paths_of(const SearchRecord& search) {
  std::vector<std::string> paths;
  if (search.space) {
    for (const Dimension& dimension : search.space->dimensions())
      paths.push_back(dimension.name);
    return paths;
  }
  std::set<std::string> found;
  for (const Trial& trial : search.trials) {
    const Json& params = trial.result->params;
    for (const auto& [path, unused] : params.items())
      found.insert(path);
  }
  return {found.begin(), found.end()};
}

Json dimension_data(const SearchSpace& space, const Dimension& dimension) {
  Json data{{"low", dimension.low},
            {"high", dimension.high},
            {"log", dimension.log},
            {"integer", dimension.kind == Dimension::Kind::kInteger},
            {"when", nullptr}};
  if (dimension.kind == Dimension::Kind::kChoice)
    data["choices"] = dimension.choices;
  if (dimension.when)
    data["when"] = {{"parent", *space.find(dimension.when->parent)},
                    {"choices", dimension.when->choices}};
  return data;
}

/// The last epoch with a value for the pruner; null without one.
Json epochs_of(const SearchResult::Trial& trial) {
  return trial.intermediate.empty() ? Json() : Json(trial.intermediate.back().step);
}

Json trial_data(const Trial& trial, const std::vector<std::string>& paths) {
  Json data{{"number", trial.result->number},
            {"state", trial.result->state},
            {"values", trial.values},
            {"params", Json::array()},
            {"feasible", trial.is_feasible()},
            {"violation", trial.violation},
            {"error", trial.result->error},
            {"epochs", epochs_of(*trial.result)},
            {"point", nullptr}};
  for (const std::string& path : paths)
    data["params"].push_back(at_path(trial.result->params, {path}));
  for (std::size_t d = 0; trial.point && d < trial.point->size(); ++d)
    data["point"].push_back((*trial.point)[d]);
  return data;
}

/// The trials that have a curve: every n-th point and the last.
Json curves_data(const std::vector<SearchRecord::Curve>& curves) {
  const auto drawn = static_cast<std::size_t>(
      std::count_if(curves.begin(), curves.end(),
                    [](const SearchRecord::Curve& curve) { return !curve.epochs.empty(); }));
  const std::size_t most =
      std::max(kFewestPointsPerCurve, kMostCurvePoints / std::max<std::size_t>(drawn, 1));
  Json data = Json::array();
  for (std::size_t trial = 0; trial < curves.size(); ++trial) {
    const std::size_t points = curves[trial].epochs.size();
    if (points == 0)
      continue;
    const std::size_t stride = (points + most - 1) / most;
    Json kept = Json::array();
    for (std::size_t i = 0; i < points; ++i) {
      if (i % stride == 0 || i + 1 == points)
        kept.push_back({curves[trial].epochs[i], curves[trial].values[i]});
    }
    data.push_back({{"trial", trial}, {"points", std::move(kept)}});
  }
  return data;
}

}  // namespace

List search_section(const SearchRecord& search) {
  return {group({overview_card(search), best_card(search)}), Json{{"block", "search"}}};
}

Json search_data(const SearchRecord& search, const ReportInput& input) {
  const std::vector<std::string> paths = paths_of(search);
  Json data{{"objectives", Json::array()},
            {"best", search.best ? Json(*search.best) : Json()},
            {"pareto", search.pareto},
            {"order", best_first(search)},
            {"importances", importances_of(search)},
            {"paths", paths},
            {"constrained", search.has_constraints},
            {"trials", Json::array()},
            {"dimensions", Json::array()},
            {"curves", Json::array()}};
  for (std::size_t i = 0; i < search.objectives().size(); ++i) {
    const Objective& objective = search.objectives()[i];
    data["objectives"].push_back({{"name", objective.name}, {"maximizes", objective.maximizes}});
    data["curves"].push_back(curves_data(trial_curves(search, input, i)));
  }
  for (const Trial& trial : search.trials)
    data["trials"].push_back(trial_data(trial, paths));
  if (search.space) {
    for (const Dimension& dimension : search.space->dimensions())
      data["dimensions"].push_back(dimension_data(*search.space, dimension));
  }
  return data;
}

}  // namespace treadle::report
