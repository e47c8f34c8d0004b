#include <string>
#include <string_view>
#include <utility>

#include <treadle/host/catalog/workflow_document.h>

#include "report/sections/sections.h"
#include "result/json_path.h"

namespace treadle::report {
namespace {

using internal::at_path;

Json written(std::string_view title, std::string text) {
  return card(title, {Json{{"block", "code"}, {"text", std::move(text)}}}, /*is_folded=*/true);
}

/// The processes that trained together, with the part of their time in exchanges; null for one.
Json processes_card(const std::vector<RankTime>& ranks) {
  constexpr std::size_t kShown = 8;
  List rows;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    rows.push_back(List{"rank " + std::to_string(rank), ranks[rank].host,
                        as("seconds", ranks[rank].exchange_seconds),
                        as("share", ranks[rank].waiting_share),
                        as("share", ranks[rank].budget_used)});
  }
  if (rows.empty())
    return {};
  return card(
      "Processes",
      {table({"", Json{{"name", "host"}, {"left", true}}, "time in exchanges", "waiting share",
              "workers used"},
             std::move(rows), kShown, "ranks"),
       note("Time in exchanges with other processes, waiting for them included; the waiting share "
            "is that of the wall time after loading. Processes with fits of their own exchange "
            "nothing. The results are those of one process.")});
}

}  // namespace

Json folds_in_time(const Json& plan) {
  const Json& folds = at_path(plan, {"folds"});
  const Json& steps = at_path(plan, {"steps"});
  if (!folds.is_array() || folds.size() < 2 || !steps.is_number_integer() || steps < 1)
    return {};
  return card("Folds in time", {Json{{"block", "stretches"}, {"plan", plan}}});
}

List background(const ReportInput& input) {
  const RunResult& result = input.result;
  List choices;
  for (const std::string& choice : result.choices)
    choices.push_back(as("setting", choice));
  List blocks;
  if (!choices.empty())
    blocks.push_back(
        card("What was decided for you", {Json{{"block", "list"}, {"items", choices}}}));
  blocks.push_back(processes_card(result.time.ranks));
  blocks.push_back(group({result.cross_validation ? model_card(result) : Json(),
                          result.device ? record("device", to_json(*result.device)) : Json(),
                          record("environment", result.environment)}));
  if (input.document.is_object())
    blocks.push_back(written("Configuration", write_workflow(input.document)));
  if (result.extensions.is_object() && !result.extensions.empty()) {
    blocks.push_back(written(
        "Extensions", result.extensions.dump(2, ' ', false, Json::error_handler_t::replace)));
  }
  return blocks;
}

}  // namespace treadle::report
