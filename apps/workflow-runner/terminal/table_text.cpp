#include "terminal/table_text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include <treadle/base/json_words.h>
#include <treadle/base/text_wrap.h>

#include "terminal/result_text.h"

namespace treadle::cli {
namespace {

using Json = nlohmann::json;
using Row = std::array<std::string, 5>;

/// A name in a table: of any length, with anything in it.
constexpr std::size_t kWidestName = 32;

std::string levels_of(const ColumnProfile& column) {
  return column.distinct ? std::to_string(*column.distinct) : "many";
}

std::string counted(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

/// All columns, but of a wide table the first and the target.
std::vector<const automl::ColumnReading*> shown_columns(const automl::TableReading& table) {
  constexpr std::size_t kMost = 100;
  constexpr std::size_t kFirst = 50;
  std::vector<const automl::ColumnReading*> shown;
  for (const automl::ColumnReading& column : table.columns) {
    if (table.columns.size() <= kMost || shown.size() < kFirst ||
        column.use == automl::ColumnUse::kTarget) {
      shown.push_back(&column);
    }
  }
  return shown;
}

/// "… 2950 more columns: 2948 number, 2 left out".
std::string others_text(const automl::TableReading& table,
                        const std::vector<const automl::ColumnReading*>& shown) {
  std::map<automl::ColumnUse, std::size_t> counts;
  for (const automl::ColumnReading& column : table.columns)
    ++counts[column.use];
  for (const automl::ColumnReading* column : shown)
    --counts[column->use];
  std::string text;
  for (const auto& [use, count] : counts) {
    if (count > 0)
      text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(name_of(use));
  }
  return "  … " + counted(table.columns.size() - shown.size(), "more column") + ": " + text +
         "; --document-only FILE --json lists all\n";
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
  const std::vector<const automl::ColumnReading*> shown = shown_columns(table);
  for (const automl::ColumnReading* column : shown)
    rows.push_back(row_of(*column));
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
  std::string text =
      terminal.bold(plain_text(table.place) + ": " +
                    counted(static_cast<std::size_t>(table.rows), "row") + ", " +
                    counted(table.columns.size(), "column") +
                    (table.parameters.value("header", true) ? "" : ", no header line")) +
      "\n" + line(head.front());
  for (const Row& row : rows)
    text += line(row);
  if (shown.size() < table.columns.size())
    text += others_text(table, shown);
  return text + "Task  " + std::string(automl::name_of(table.task)) + " of " +
         plain_text(table.target_column().profile.name) + ": " + plain_text(table.task_reason) +
         "\n";
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
