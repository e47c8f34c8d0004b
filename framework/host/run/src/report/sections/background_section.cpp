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

constexpr std::size_t kShownRows = 12;

double amount_at(const Json& record, std::string_view key) {
  const Json& found = at_path(record, {key});
  return found.is_number() ? found.get<double>() : 0;
}

Json share_of(double part, double whole) {
  return as("share", whole > 0 ? Json(part / whole) : Json());
}

Json columns_table(const Json& inputs, double described) {
  List rows;
  for (const Json& port : inputs) {
    for (const Json& column : at_path(port, {"columns"})) {
      List type{at_path(column, {"type"})};
      if (const Json& categories = at_path(column, {"categories"}); categories.is_number())
        append(type, {", ", as("count", categories), " values"});
      const double missing = amount_at(column, "missing");
      rows.push_back(List{at_path(column, {"name"}), std::move(type),
                          missing > 0 ? Json(List{as("count", missing), " ",
                                                  as("soft", share_of(missing, described))})
                                      : Json("none")});
    }
  }
  return table({"column", "type", "missing"}, std::move(rows), kShownRows, "columns");
}

Json target_table(const Json& target, double described) {
  List rows;
  for (const Json& one : at_path(target, {"classes"})) {
    const double in_class = amount_at(one, "rows");
    rows.push_back(
        List{at_path(one, {"name"}), as("count", in_class), share_of(in_class, described)});
  }
  if (!rows.empty())
    return table({"class", "rows", "share"}, std::move(rows), kShownRows, "classes");
  const Json& numbers = at_path(target, {"numbers"});
  const std::string name = text_at_path(target, {"name"});
  for (const Json& one : numbers) {
    rows.push_back(List{numbers.size() == 1 ? name : name + "." + std::to_string(rows.size()),
                        at_path(one, {"smallest"}), at_path(one, {"mean"}),
                        at_path(one, {"largest"})});
  }
  return table({"target", "smallest", "mean", "largest"}, std::move(rows), kShownRows, "numbers");
}

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
  if (amount_at(device, "busy_seconds") > 0) {
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

Json data_section(const Json& data) {
  if (!data.is_object())
    return {};
  // Of a stream, the first rows are described.
  const bool is_stream = data.contains("described_rows");
  const double described = amount_at(data, is_stream ? "described_rows" : "rows");
  const Json& all = at_path(data, {"rows"});
  const Json& inputs = at_path(data, {"inputs"});
  const Json& targets = at_path(data, {"targets"});
  List rows{List{"rows", all.is_number() ? as("count", all) : Json("a stream")},
            List{"described here",
                 is_stream ? Json(List{"the first ", as("count", described)}) : Json()}};
  for (const Json& port : inputs)
    rows.push_back(
        List{"input " + text_at_path(port, {"name"}), as("shape", at_path(port, {"shape"}))});
  List cards{Json()};
  for (const Json& target : targets) {
    const std::string name = text_at_path(target, {"name"});
    rows.push_back(List{"target", name});
    cards.push_back(
        card(targets.size() == 1 ? "Target" : "Target " + name, {target_table(target, described)}));
  }
  cards.front() = card("Data", {facts(std::move(rows)), columns_table(inputs, described)});
  return group(std::move(cards));
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
