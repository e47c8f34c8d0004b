#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <treadle/table/table_options.h>

namespace treadle::table {
namespace {

using Json = nlohmann::json;

constexpr std::array kMissingNames{std::pair{"error", Missing::kError},
                                   std::pair{"nan", Missing::kNan},
                                   std::pair{"drop_row", Missing::kDropRow}};

constexpr std::array kKindNames{
    std::pair{"auto", KindAsked::kAuto}, std::pair{"classes", KindAsked::kClasses},
    std::pair{"numbers", KindAsked::kNumbers}, std::pair{"labels", KindAsked::kLabels},
    std::pair{"distribution", KindAsked::kDistribution}};

ColumnName column_name(const Json& value) {
  if (value.is_string())
    return value.get<std::string>();
  return value.get<std::int64_t>();
}

std::vector<ColumnName> column_names(const Json& list) {
  std::vector<ColumnName> names;
  for (const Json& value : list)
    names.push_back(column_name(value));
  return names;
}

TargetOption target_option(const Config& config, const Json& value) {
  if (!value.is_object())
    return {"", {column_name(value)}};
  TargetOption target{value.at("name").get<std::string>(), column_names(value.at("columns"))};
  const auto kind = value.value("kind", std::string("auto"));
  const auto* const found = std::find_if(kKindNames.begin(), kKindNames.end(),
                                         [&](const auto& entry) { return kind == entry.first; });
  if (found == kKindNames.end())
    config.fail("target", "has the kind \"" + kind +
                              "\"; kinds are auto, classes, numbers, labels and distribution");
  target.kind = found->second;
  if (target.kind == KindAsked::kClasses && target.columns.size() != 1)
    config.fail("target", "\"" + target.name + "\" is classes, which are in one column");
  return target;
}

}  // namespace

TableOptions::TableOptions(const Config& config) : in_memory(config.get_or("in_memory", true)) {
  const Json& json = config.json();
  missing_values = config.get_or("missing_values", missing_values);
  if (config.has("target")) {
    targets.clear();
    const Json list = json["target"].is_array() ? json["target"] : Json::array({json["target"]});
    for (const Json& target : list)
      targets.push_back(target_option(config, target));
  }
  if (config.has("columns"))
    columns = column_names(json["columns"]);
  if (config.has("inputs")) {
    if (columns)
      config.fail("inputs", "names the columns of each input itself; leave out \"columns\"");
    inputs.emplace();
    for (const auto& [port, list] : json["inputs"].items())
      inputs->emplace(port, column_names(list));
  }
  if (config.has("categorical"))
    categorical = column_names(json["categorical"]);
  if (config.has("dates"))
    dates = column_names(json["dates"]);
  if (config.has("calendar")) {
    if (dates.empty())
      config.fail("calendar", "has no effect without \"dates\", the columns with dates");
    calendar = config.get<std::vector<std::string>>("calendar");
  }
  drops_rows_without_target = config.get_or<std::string>("missing_target", "") == "drop_row";
  unknown_is_missing = config.get_or<std::string>("handle_unknown", "error") == "missing";
  const std::pair<const char*, std::optional<ColumnName>*> roles[] = {
      {"weight", &weight}, {"group", &group}, {"time", &time}, {"label_end", &label_end}};
  for (const auto& [key, column] : roles) {
    if (config.has(key))
      *column = column_name(json[key]);
  }
  for (const auto& [key, column] : roles) {
    if (*column && !in_memory && column != &weight) {
      config.fail(key,
                  "has no effect with \"in_memory\": false: rows that are read in order have "
                  "no groups and no times; leave the column out of \"columns\"");
    }
  }
  if (label_end && !time)
    config.fail("label_end",
                "has no effect without \"time\", the column with the time of each row");
  if (config.has("missing")) {
    const auto name = config.get<std::string>("missing");
    const auto* const found = std::find_if(kMissingNames.begin(), kMissingNames.end(),
                                           [&](const auto& entry) { return name == entry.first; });
    if (found == kMissingNames.end())
      config.fail("missing", R"(must be "error", "nan" or "drop_row")");
    missing = found->second;
  }
}

}  // namespace treadle::table
