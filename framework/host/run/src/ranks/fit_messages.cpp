#include "ranks/fit_messages.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/problem.h>

namespace treadle::internal {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

json to_json(const Number& number) {
  return json::array({number.value(), number.why()});
}

Number number_from(const json& pair) {
  const auto why = pair.at(1).get<std::string>();
  return why.empty() ? Number(pair.at(0).get<double>()) : Number::undefined(why);
}

json to_json(const std::vector<MetricValue>& values) {
  json all = json::array();
  for (const MetricValue& value : values)
    all.push_back({value.name, to_json(value.value), static_cast<int>(value.direction)});
  return all;
}

std::vector<MetricValue> metrics_from(const json& all) {
  std::vector<MetricValue> values;
  for (const json& one : all) {
    values.push_back({one.at(0).get<std::string>(), number_from(one.at(1)),
                      static_cast<Direction>(one.at(2).get<int>())});
  }
  return values;
}

template <typename Value>
std::optional<Value> optional_from(const json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<Value>());
}

template <typename Value>
json bytes_of(const std::vector<Value>& values) {
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(values.data());
  return json::binary(std::vector<std::uint8_t>(begin, begin + values.size() * sizeof(Value)));
}

template <typename Value>
std::vector<Value> values_in(const json& bytes) {
  const std::vector<std::uint8_t>& binary = bytes.get_binary();
  std::vector<Value> values(binary.size() / sizeof(Value));
  if (!values.empty())
    std::memcpy(values.data(), binary.data(), values.size() * sizeof(Value));
  return values;
}

json to_json(const RowList& rows) {
  std::vector<RowRange> ranges;
  rows.for_each_range([&](const RowRange& range) { ranges.push_back(range); });
  return bytes_of(ranges);
}

RowList rows_from(const json& bytes) {
  RowList::Builder rows;
  for (const RowRange& range : values_in<RowRange>(bytes))
    rows.add(range);
  return rows.done();
}

std::vector<Problem> problems_from(const json& all) {
  std::vector<Problem> problems;
  for (const json& one : all) {
    problems.push_back({{one.at(0).get<std::string>(), one.at(1).get<int>(), one.at(2).get<int>()},
                        one.at(3).get<std::string>(),
                        one.at(4).get<std::string>()});
  }
  return problems;
}

/// The flags of a planned fit that whoever trains it needs.
constexpr std::array kFlags{&PlannedFit::keeps_weights, &PlannedFit::is_result,
                            &PlannedFit::is_drawn, &PlannedFit::counts_cost,
                            &PlannedFit::is_judged};

}  // namespace

json message(FitMessage kind, json content) {
  content["kind"] = static_cast<int>(kind);
  return content;
}

FitMessage kind_of(const json& message) {
  return static_cast<FitMessage>(message.at("kind").get<int>());
}

json to_json(const FitId& id) {
  return {{"path", id.path()}, {"indices", id.indices()}, {"count", id.count()}};
}

FitId fit_id_from(const json& json) {
  const auto path = json.at("path").get<std::string>();
  const auto indices = json.at("indices").get<std::vector<std::int64_t>>();
  const auto count = json.at("count").get<std::int64_t>();
  std::optional<FitId> id;
  std::size_t begin = 0;
  for (const std::int64_t index : indices) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    id = id ? id->child(name, index, count) : FitId(name, index, count);
    begin = end + 1;
  }
  return id.value();
}

json to_json(const EpochSummary& epoch) {
  return {{"epoch", epoch.epoch},
          {"epochs", epoch.epochs ? json(*epoch.epochs) : json()},
          {"step", epoch.step},
          {"learning_rate", epoch.learning_rate},
          {"train_loss", to_json(epoch.train_loss)},
          {"val_loss", epoch.val_loss ? to_json(*epoch.val_loss) : json()},
          {"metrics", to_json(epoch.metrics)},
          {"best", epoch.best},
          {"seconds", epoch.seconds},
          {"logged", to_json(epoch.logged)},
          {"decisions", epoch.decisions}};
}

EpochSummary epoch_from(const json& json) {
  EpochSummary epoch;
  epoch.epoch = json.at("epoch").get<std::int64_t>();
  epoch.epochs = optional_from<std::int64_t>(json.at("epochs"));
  epoch.step = json.at("step").get<std::int64_t>();
  epoch.learning_rate = json.at("learning_rate").get<double>();
  epoch.train_loss = number_from(json.at("train_loss"));
  if (!json.at("val_loss").is_null())
    epoch.val_loss = number_from(json.at("val_loss"));
  epoch.metrics = metrics_from(json.at("metrics"));
  epoch.best = json.at("best").get<bool>();
  epoch.seconds = json.at("seconds").get<double>();
  epoch.logged = metrics_from(json.at("logged"));
  epoch.decisions = json.at("decisions").get<std::vector<std::string>>();
  return epoch;
}

json to_json(const FitSummary& summary) {
  return {{"best_epoch", summary.best_epoch},
          {"epochs", summary.epochs},
          {"final_loss", to_json(summary.final_loss)},
          {"best_loss", to_json(summary.best_loss)},
          {"stop_reason", summary.stop_reason},
          {"metrics", to_json(summary.metrics)},
          {"seconds", summary.seconds}};
}

FitSummary fit_summary_from(const json& json) {
  return {.best_epoch = json.at("best_epoch").get<std::int64_t>(),
          .epochs = json.at("epochs").get<std::int64_t>(),
          .final_loss = number_from(json.at("final_loss")),
          .best_loss = number_from(json.at("best_loss")),
          .stop_reason = json.at("stop_reason").get<std::string>(),
          .metrics = metrics_from(json.at("metrics")),
          .seconds = json.at("seconds").get<double>()};
}

json to_json(const PlannedFit& fit) {
  TREADLE_EXPECTS(!fit.epochs, "a fit is lent when its epochs are known");
  json flags = json::array();
  for (const auto flag : kFlags)
    flags.push_back(fit.*flag);
  json start;
  if (fit.start)
    start = {fit.start->fit, static_cast<int>(fit.start->from)};
  return {{"id", to_json(fit.id)},
          {"rows",
           {to_json(fit.rows->training), to_json(fit.rows->validation), to_json(fit.rows->test),
            fit.rows->fixed_epochs, to_json(fit.rows->outputs)}},
          {"workflow", fit.workflow ? fit.workflow->resolved : json()},
          {"start", std::move(start)},
          {"baseline", fit.baseline},
          {"model_folder", fit.model_folder},
          {"deadline", fit.deadline ? json(fit.deadline->time_since_epoch().count()) : json()},
          {"flags", std::move(flags)}};
}

PlannedFit planned_fit_from(
    const json& json,
    const std::function<std::shared_ptr<const ResolvedWorkflow>(const nlohmann::json&)>&
        workflow_of) {
  const nlohmann::json& rows = json.at("rows");
  FitRows of_fit{.training = rows_from(rows.at(0)),
                 .validation = rows_from(rows.at(1)),
                 .fixed_epochs = rows.at(3).get<std::int64_t>(),
                 .test = rows_from(rows.at(2)),
                 .outputs = rows_from(rows.at(4))};
  PlannedFit fit{fit_id_from(json.at("id")), std::make_shared<const FitRows>(std::move(of_fit))};
  if (!json.at("workflow").is_null())
    fit.workflow = workflow_of(json.at("workflow"));
  if (const nlohmann::json& start = json.at("start"); !start.is_null()) {
    fit.start = WarmStart{start.at(0).get<std::string>(),
                          static_cast<WarmStart::From>(start.at(1).get<int>())};
  }
  fit.baseline = json.at("baseline").get<std::string>();
  fit.model_folder = json.at("model_folder").get<std::string>();
  if (const auto deadline = optional_from<Clock::rep>(json.at("deadline")))
    fit.deadline = Clock::time_point(Clock::duration(*deadline));
  for (std::size_t i = 0; i < kFlags.size(); ++i)
    fit.*kFlags[i] = json.at("flags").at(i).get<bool>();
  return fit;
}

json to_json(const std::exception& error) {
  if (const auto* const wrong = dynamic_cast<const DocumentError*>(&error)) {
    json problems = json::array();
    for (const Problem& one : wrong->problems()) {
      problems.push_back(
          {one.place.file, one.place.line, one.place.column, one.pointer, one.message});
    }
    return {{"error", static_cast<int>(ErrorKind::kDocument)}, {"text", std::move(problems)}};
  }
  const auto* const known = dynamic_cast<const Error*>(&error);
  const ErrorKind kind = known != nullptr ? known->kind() : ErrorKind::kTraining;
  return {{"error", static_cast<int>(kind)}, {"text", error.what()}};
}

json to_json(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return to_json(known);
  }
}

std::exception_ptr error_from(const json& json) {
  const auto kind = static_cast<ErrorKind>(json.at("error").get<int>());
  if (json.at("text").is_array())
    return std::make_exception_ptr(DocumentError(problems_from(json.at("text"))));
  const auto text = json.at("text").get<std::string>();
  switch (kind) {
    case ErrorKind::kPlugin:
      return std::make_exception_ptr(PluginError(text));
    case ErrorKind::kData:
      return std::make_exception_ptr(DataError(text));
    case ErrorKind::kStorage:
      return std::make_exception_ptr(StorageError(text));
    case ErrorKind::kInterrupted:
      return std::make_exception_ptr(Interrupted(text));
    case ErrorKind::kUsage:
      return std::make_exception_ptr(UsageError(text));
    case ErrorKind::kInternal:
      return std::make_exception_ptr(ContractViolation(text));
    case ErrorKind::kCommunication:
      return std::make_exception_ptr(CommunicationError(text));
    case ErrorKind::kDocument:
    case ErrorKind::kTraining:
      break;
  }
  return std::make_exception_ptr(TrainingError(text));
}

}  // namespace treadle::internal
