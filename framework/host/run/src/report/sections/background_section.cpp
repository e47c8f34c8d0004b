#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <treadle/host/catalog/workflow_document.h>

#include "report/sections/sections.h"
#include "result/json_path.h"

namespace treadle::report {
namespace {

using internal::at_path;
using internal::text_at_path;

/// The work of a device that is not the CPU.
Json device_card(const Json& device) {
  List rows = facts_in(device, {{"device", "name", "setting"},
                                {"peak memory", "memory_peak_bytes", "bytes"},
                                {"reserved memory", "memory_reserved_bytes", "bytes"},
                                {"copies to the device", "copies_to_device", "count"},
                                {"bytes to the device", "bytes_to_device", "bytes"},
                                {"copies to the host", "copies_to_host", "count"},
                                {"bytes to the host", "bytes_to_host", "bytes"},
                                {"waits of the host", "waits", "count"},
                                {"time in waits", "seconds_waiting", "seconds"}});
  if (const Json& busy = at_path(device, {"busy_seconds"}); busy.is_number() && busy > 0) {
    append(rows, facts_in(device, {{"busy with steps", "busy_seconds", "seconds"},
                                   {"idle between steps", "idle_seconds", "seconds"},
                                   {"share of idle time", "idle_fraction", "share"}}));
  }
  return card("Device", {facts(std::move(rows))});
}

Json environment_card(const Json& environment) {
  constexpr std::string_view kBytes = "_bytes";
  List rows;
  List plugins;
  for (const auto& [key, value] : environment.items()) {
    if (key == "plugins")
      continue;
    // "peak_memory_bytes" is shown as "peak memory".
    const bool is_size = key.ends_with(kBytes) && value.is_number();
    std::string words = is_size ? key.substr(0, key.size() - kBytes.size()) : key;
    std::replace(words.begin(), words.end(), '_', ' ');
    rows.push_back(List{std::move(words), as(is_size ? "bytes" : "setting", value)});
  }
  for (const Json& plugin : at_path(environment, {"plugins"})) {
    plugins.push_back(List{at_path(plugin, {"id"}), at_path(plugin, {"version"}),
                           as("code", text_at_path(plugin, {"build_id"}).substr(0, 16))});
  }
  const std::string_view noun = plugins.size() == 1 ? "plugin" : "plugins";
  return card("Environment", {facts(std::move(rows)),
                              table({"plugin", "version", "build"}, std::move(plugins), 0, noun)});
}

Json written(std::string_view title, std::string text) {
  return card(title, {Json{{"block", "code"}, {"text", std::move(text)}}}, /*is_folded=*/true);
}

}  // namespace

Json folds_in_time(const Json& result) {
  const Json& plan = at_path(result, {"plan"});
  const Json& folds = at_path(plan, {"folds"});
  const Json& steps = at_path(plan, {"steps"});
  if (!folds.is_array() || folds.size() < 2 || !steps.is_number_integer() || steps < 1)
    return {};
  return card("Folds in time", {Json{{"block", "stretches"}, {"plan", plan}}});
}

List background(const ReportInput& input) {
  const Json& result = input.result;
  const bool is_model_shown = !at_path(result, {"fold_results"}).is_array();
  List choices;
  for (const Json& choice : at_path(result, {"choices"}))
    choices.push_back(as("setting", choice));
  List blocks;
  if (!choices.empty())
    blocks.push_back(
        card("What was decided for you", {Json{{"block", "list"}, {"items", choices}}}));
  blocks.push_back(
      group({is_model_shown ? Json() : model_card(result), device_card(at_path(result, {"device"})),
             environment_card(at_path(result, {"environment"}))}));
  if (input.document.is_object())
    blocks.push_back(written("Configuration", write_workflow(input.document)));
  if (const Json& extensions = at_path(result, {"extensions"});
      extensions.is_object() && !extensions.empty()) {
    blocks.push_back(
        written("Extensions", extensions.dump(2, ' ', false, Json::error_handler_t::replace)));
  }
  return blocks;
}

}  // namespace treadle::report
