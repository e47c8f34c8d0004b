#include "table_text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include <treadle/base/json_words.h>
#include <treadle/base/text_wrap.h>

#include "result_text.h"

namespace treadle::cli {
namespace {

using Json = nlohmann::json;
using Row = std::array<std::string, 5>;

/// A name in a table: of any length, with anything in it.
constexpr std::size_t kWidestName = 32;

std::string levels_of(const ColumnProfile& column) {
  return column.distinct ? std::to_string(*column.distinct) : "many";
}

Row row_of(const automl::ColumnReading& column) {
  const ColumnProfile& profile = column.profile;
  return {cut_to(plain_text(profile.name), kWidestName), std::string(automl::name_of(column.use)),
          profile.missing == 0 ? "-" : std::to_string(profile.missing), levels_of(profile),
          plain_text(column.reason)};
}

}  // namespace

std::string table_text(const automl::TableReading& table, const Terminal& terminal) {
  const std::vector<Row> head{{"column", "type", "missing", "levels", "why"}};
  std::vector<Row> rows;
  for (const automl::ColumnReading& column : table.columns)
    rows.push_back(row_of(column));
  std::array<std::size_t, 4> widths{};
  for (const std::vector<Row>* some : {&head, static_cast<const std::vector<Row>*>(&rows)}) {
    for (const Row& row : *some) {
      for (std::size_t i = 0; i < widths.size(); ++i)
        widths[i] = std::max(widths[i], columns_of(row[i]));
    }
  }
  const auto line = [&](const Row& row) {
    const std::string left =
        "  " + left_aligned(row[0], widths[0]) + "  " + left_aligned(row[1], widths[1]) + "  " +
        right_aligned(row[2], widths[2]) + "  " + right_aligned(row[3], widths[3]) + "  ";
    std::string text = hanging_text(left, columns_of(left), row[4], terminal.width());
    while (text.ends_with(" \n"))
      text.erase(text.size() - 2, 1);
    return text;
  };
  std::string text = terminal.bold(plain_text(table.place) + ": " + std::to_string(table.rows) +
                                   " rows, " + std::to_string(table.columns.size()) + " columns") +
                     "\n" + line(head.front());
  for (const Row& row : rows)
    text += line(row);
  return text + "Task  " + std::string(automl::name_of(table.task)) + " of " +
         plain_text(table.target_column().profile.name) + ": " + plain_text(table.task_reason) +
         "\n";
}

std::string ensemble_text(const Json& result) {
  const Json search = result.value("search", Json::object());
  if (!search.contains("ensemble"))
    return {};
  const Json& ensemble = search.at("ensemble");
  return "Ensemble  " + std::to_string(ensemble.at("members").size()) + " models, " +
         ensemble.at("objective").get<std::string>() + " " +
         number_text(ensemble.at("validation")) + " on rows they were not trained on\n";
}

Json table_json(const automl::TableReading& table) {
  Json columns = Json::array();
  for (const automl::ColumnReading& column : table.columns) {
    Json one{{"name", column.profile.name},
             {"type", automl::name_of(column.use)},
             {"missing", column.profile.missing},
             {"why", column.reason}};
    if (column.profile.distinct)
      one["levels"] = *column.profile.distinct;
    columns.push_back(std::move(one));
  }
  return {{"rows", table.rows},
          {"task", automl::name_of(table.task)},
          {"task_why", table.task_reason},
          {"target", table.target_column().profile.name},
          {"columns", std::move(columns)}};
}

}  // namespace treadle::cli
