#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
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

DateFormat date_format(const Config& config, const Json& format,
                       const std::optional<TimeZone>& zone, Ambiguous ambiguous) {
  if (!format.is_string())
    config.fail("date_format", "must be a format, or an object from column to format");
  try {
    return DateFormat(format.get<std::string>(), zone, ambiguous);
  } catch (const UsageError& error) {
    config.fail("date_format", error.what());
  }
}

std::optional<TimeZone> time_zone(const Config& config) {
  if (!config.has("timezone"))
    return std::nullopt;
  try {
    return TimeZone::load(config.get<std::string>("timezone"));
  } catch (const UsageError& error) {
    config.fail("timezone", error.what());
  }
}

}  // namespace

void TableOptions::set_dates(const Config& config) {
  for (const char* key : {"date_format", "timezone"}) {
    if (config.has(key) && dates.empty() && !time)
      unused_date_key = key;
  }
  const std::optional<TimeZone> zone = time_zone(config);
  if (config.has("ambiguous") && !zone)
    config.fail("ambiguous", "has no effect without \"timezone\"");
  const auto rule = config.get_or<std::string>("ambiguous", "error");
  const Ambiguous ambiguous = rule == "earliest" ? Ambiguous::kEarliest
                              : rule == "latest" ? Ambiguous::kLatest
                                                 : Ambiguous::kError;
  const Json formats = config.has("date_format") ? config.json()["date_format"] : Json("iso8601");
  const bool is_by_column = formats.is_object();
  date_format =
      table::date_format(config, is_by_column ? Json("iso8601") : formats, zone, ambiguous);
  if (!is_by_column)
    return;
  std::vector<ColumnName> known = dates;
  for (const std::optional<ColumnName>& column : {time, label_end}) {
    if (column)
      known.push_back(*column);
  }
  for (const auto& [column, format] : formats.items()) {
    if (std::find(known.begin(), known.end(), ColumnName(column)) == known.end()) {
      config.fail("date_format",
                  "names " + quote_text(column) +
                      ", which is none of the columns of \"dates\", \"time\" and \"label_end\"");
    }
    date_formats.emplace(column, table::date_format(config, format, zone, ambiguous));
  }
}

void TableOptions::set_texts(const Config& config) {
  if (!config.has("texts"))
    return;
  if (!in_memory) {
    config.fail("texts",
                "need the table in memory, which makes their vocabulary; leave out "
                "\"in_memory\": false");
  }
  for (const Config& text : config.children("texts")) {
    TextOption& option = texts.emplace_back();
    option.column = column_name(text.json().at("column"));
    option.max_length = text.get_or("max_length", option.max_length);
  }
}

const DateFormat& TableOptions::date_format_of(const std::string& column) const {
  const auto found = date_formats.find(column);
  return found == date_formats.end() ? date_format : found->second;
}

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
  set_dates(config);
  set_texts(config);
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
