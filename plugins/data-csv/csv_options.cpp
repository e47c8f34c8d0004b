#include "csv_options.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "byte_source.h"

namespace treadle::csv {
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

// `key` holds one character, or none where `none` says what stands for it.
char character(const Config& config, const char* key, char fallback) {
  if (!config.has(key))
    return fallback;
  const auto text = config.get<std::string>(key);
  if (text.empty())
    return '\0';
  if (text.size() > 1 || text == "\n" || text == "\r" || text[0] == '\0')
    config.fail(key, "must be one ASCII character that does not end a line");
  return text[0];
}

}  // namespace

CsvOptions::CsvOptions(const Config& config)
    : path(config.get<std::string>("path")),
      header(config.get_or("header", true)),
      skip_rows(config.get_or("skip_rows", std::int64_t{0})),
      separator(character(config, "separator", ',')),
      quote(character(config, "quote", '"')),
      encoding(config.get_or<std::string>("encoding", "utf-8")) {
  const Json& json = config.json();
  if (separator == '\0' || separator == quote)
    config.fail("separator", "must be a character, and another one than \"quote\"");
  if (!table::is_encoding(encoding)) {
    config.fail("encoding",
                "\"" + encoding + "\" is none that iconv knows; \"iconv -l\" lists them");
  }
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

}  // namespace treadle::csv
