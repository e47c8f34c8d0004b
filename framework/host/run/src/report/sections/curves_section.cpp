#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "report/sections/sections.h"

namespace treadle::report {
namespace {

constexpr std::size_t kMostPointsPerCurve = 1200;

Json number_of(const std::vector<MetricValue>& values, std::string_view name) {
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](const MetricValue& value) { return value.name == name; });
  return found == values.end() ? Json() : Json(found->value);
}

/// The columns of the epochs besides losses and learning rate.
struct Followed {
  std::vector<std::string> metrics;
  std::vector<std::string> logged;
  bool has_decisions = false;
};

Followed followed_in(const ReportInput& input, const Numbers& numbers) {
  Followed followed;
  const auto add = [](std::vector<std::string>& names, const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  };
  for (const TrainingCurve& curve : input.curves) {
    if (curve.epochs.empty())
      continue;
    for (const MetricValue& metric : numbers.metrics) {
      if (!is_of_one_class(metric.name) &&
          !number_of(curve.epochs.front().metrics, metric.name).is_null())
        add(followed.metrics, metric.name);
    }
    for (const MetricValue& value : curve.epochs.front().logged)
      add(followed.logged, value.name);
    for (const EpochSummary& epoch : curve.epochs)
      followed.has_decisions = followed.has_decisions || !epoch.decisions.empty();
  }
  return followed;
}

Json row_of(const EpochSummary& epoch, const Followed& followed) {
  List row{epoch.epoch, epoch.train_loss, epoch.val_loss ? Json(*epoch.val_loss) : Json()};
  for (const std::string& name : followed.metrics)
    row.push_back(number_of(epoch.metrics, name));
  for (const std::string& name : followed.logged)
    row.push_back(number_of(epoch.logged, name));
  row.emplace_back(epoch.learning_rate);
  std::string decided;
  for (const std::string& decision : epoch.decisions)
    decided += (decided.empty() ? "" : "; ") + decision;
  if (followed.has_decisions)
    row.emplace_back(std::move(decided));
  return row;
}

/// Every n-th epoch, the last, and the last that was the best so far, if it was validated: the best
/// by training loss does not measure a model.
Json fit_of(const TrainingCurve& curve, const Followed& followed) {
  const std::size_t epochs = curve.epochs.size();
  const std::size_t stride = (epochs + kMostPointsPerCurve - 1) / kMostPointsPerCurve;
  std::size_t best = epochs;
  for (std::size_t i = 0; i < epochs; ++i) {
    if (curve.epochs[i].best && curve.epochs[i].val_loss)
      best = i;
  }
  Json fit{{"name", curve.fit}, {"epochs", epochs}, {"best", nullptr}, {"rows", Json::array()}};
  for (std::size_t i = 0; i < epochs; ++i) {
    if (i == best)
      fit["best"] = fit["rows"].size();
    if (i % stride == 0 || i + 1 == epochs || i == best)
      fit["rows"].push_back(row_of(curve.epochs[i], followed));
  }
  return fit;
}

}  // namespace

Json epochs_of(const ReportInput& input, const Numbers& numbers) {
  const Followed followed = followed_in(input, numbers);
  // As history.csv calls a number that a model logged.
  List drawn(followed.metrics.begin(), followed.metrics.end());
  for (const std::string& name : followed.logged)
    drawn.emplace_back("log." + name);
  List columns{"epoch", "training loss", "validation loss"};
  append(columns, drawn);
  columns.emplace_back("learning rate");
  if (followed.has_decisions)
    columns.emplace_back("decided");
  List fits;
  for (const TrainingCurve& curve : input.curves) {
    if (!curve.epochs.empty())
      fits.push_back(fit_of(curve, followed));
  }
  if (fits.empty())
    return {};
  return {{"columns", std::move(columns)}, {"drawn", std::move(drawn)}, {"fits", std::move(fits)}};
}

List curves(const Json& epochs, const Numbers& numbers) {
  if (epochs.is_null())
    return {};
  const bool has_several = epochs.at("fits").size() > 1;
  const Json& drawn = epochs.at("drawn");
  std::string_view title = "Learning rate";
  if (!drawn.empty())
    title = numbers.metrics.empty() ? "Logged" : "Metric";
  Json loss = has_several ? Json(List{"Loss ", as("soft", "dashed: training")}) : Json("Loss");
  return {
      has_several ? Json{{"block", "fits"}} : Json(),
      group({card(std::move(loss), {chart("loss")}),
             card(title,
                  {chart("curve", {{"columns", drawn.empty() ? Json{"learning rate"} : drawn}})})}),
      card("Epochs", {Json{{"block", "epochs"}}}, /*is_folded=*/true)};
}

Json milestones(const RunResult& result) {
  const std::optional<Milestones>& milestones = result.training.milestones;
  if (!milestones)
    return {};
  List rows;
  for (const Milestone& one : milestones->reached) {
    rows.push_back(List{milestones->are_shares ? as("share", one.level) : Json(one.level),
                        one.value, one.epoch, as("seconds", one.seconds)});
  }
  return card(
      "Milestones",
      {table({milestones->are_shares ? "of the way" : "at least",
              "validation " + milestones->metric, "epoch", "training time"},
             std::move(rows)),
       note(milestones->are_shares
                ? "The first epoch in which the metric had come so far from its first value to its "
                  "best one."
                : "The first epoch in which the metric was so good.")},
      /*is_folded=*/true);
}

}  // namespace treadle::report
