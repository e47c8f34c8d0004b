#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/system/host_name.h>
#include <treadle/host/launch/group_report.h>
#include <treadle/host/run/shared_conditions.h>

#include "command_line/answer.h"
#include "command_line/program.h"
#include "commands/shared_training.h"
#include "commands/tensor_commands.h"
#include "launch/group_measurement.h"
#include "launch/launched_command.h"

namespace treadle::cli {
namespace {

using Json = nlohmann::json;

std::optional<LaunchedCommand> command_in(const CommandLine& line) {
  if (line.arguments.empty())
    return std::nullopt;
  return LaunchedCommand(line.arguments);
}

/// The training that the group is for, as far as it is known without data.
class PlannedTraining {
 public:
  /// `line`: of the check. Throws as Runtime::read().
  explicit PlannedTraining(const CommandLine& line)
      : command_(command_in(line)),
        runtime_(command_ ? make_runtime(command_->line()) : Runtime()) {
    if (!command_ || goes_on(command_->line()) || pipeline_document(command_->line()))
      return;
    workflow_ = runtime_.read(command_->line().arguments[0], command_->line().overrides());
  }

  const Runtime& runtime() const { return runtime_; }
  /// Nothing: no document is given, it is that of an earlier run, which rank 0 alone has, or its
  /// stages have documents of their own.
  const std::optional<ResolvedWorkflow>& workflow() const { return workflow_; }
  Json document() const { return workflow_ ? workflow_->resolved : Json(); }
  Json resources() const {
    return workflow_ ? workflow_->resolved.at("resources") : Json::object();
  }

 private:
  static bool goes_on(const CommandLine& line) {
    return line.command->name == "resume" || line.has("from") || line.has("resume") ||
           line.arguments.empty();
  }

  const std::optional<LaunchedCommand> command_;
  const Runtime runtime_;
  std::optional<ResolvedWorkflow> workflow_;
};

/// Of this process, as rank 0 collects it.
Json facts_of(const PlannedTraining& plan, const SharedTraining& shared) {
  const Json workers = plan.resources().value("workers", Json("auto"));
  return {{"host", host_name()},
          {"address", shared.address()},
          {"threads", workers.is_number_integer() ? workers.get<std::int64_t>() : shared.workers()},
          {"conditions",
           shared_conditions(plan.runtime(), plan.document(), shared.communicator_name())}};
}

launch::GroupReport report_of(const std::vector<Json>& facts) {
  launch::GroupReport report;
  std::vector<Json> seen;  // conditions: the ranks of a host have the same
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const Json& one = facts[i];
    const Json& conditions = one.at("conditions");
    const Json& environment = conditions.at("environment");
    launch::GroupReport::Rank& rank = report.ranks.emplace_back();
    one.at("host").get_to(rank.host);
    one.at("address").get_to(rank.address);
    one.at("threads").get_to(rank.threads);
    environment.at("cpu_capability").get_to(rank.cpu_capability);
    environment.at("treadle").get_to(rank.treadle);
    environment.at("libtorch").get_to(rank.libtorch);
    environment.at("blas").get_to(rank.blas);
    if (std::find(seen.begin(), seen.end(), conditions) != seen.end())
      continue;
    seen.push_back(conditions);
    for (std::string& difference : shared_differences(facts.front().at("conditions"), conditions,
                                                      static_cast<std::int64_t>(i)))
      report.problems.push_back(std::move(difference));
  }
  return report;
}

}  // namespace

void report_group(const CommandLine& line) {
  SharedTraining shared;
  const PlannedTraining plan(line);
  RunOptions options;
  if (plan.workflow()) {
    shared.connect(plan.runtime(), *plan.workflow(), options);
  } else {
    shared.connect(plan.runtime(), options);
  }
  Communicator* const communicator = options.communicator;
  const Json mine = facts_of(plan, shared);
  launch::GroupReport report = report_of(
      communicator == nullptr ? std::vector<Json>{mine} : from_all_ranks(*communicator, mine));
  report.communicator = shared.communicator_name();
  ErrorKind refused = ErrorKind::kTraining;
  if (communicator != nullptr) {
    report.speed = measure_group(*communicator);
    try {
      if (plan.workflow())
        expect_shareable(*communicator, plan.document());
    } catch (const Error& error) {
      refused = error.kind();
      report.problems.emplace_back(error.what());
    }
  }
  if (!shared.is_first_rank())
    return;
  print(report.json());
  if (!report.problems.empty())
    throw AlreadyTold{refused};
}

}  // namespace treadle::cli
