#include "report/sections/report_data.h"

#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "report/report_html.h"
#include "result/json_path.h"

namespace treadle::report {
namespace {

using internal::at_path;
using internal::text_at_path;
using Json = nlohmann::json;
using Rows = std::vector<std::vector<std::string>>;

constexpr std::size_t kMostShownUnfolded = 12;

std::string percent(double part, double whole) {
  return whole > 0 ? std::to_string(std::lround(100 * part / whole)) + " %" : std::string("–");
}

double amount_at(const Json& value, std::string_view key) {
  const Json& found = at_path(value, {key});
  return found.is_number() ? found.get<double>() : 0;
}

std::string missing_text(const Json& column, double rows) {
  const double missing = amount_at(column, "missing");
  return missing > 0 ? html::amount(missing) + " <span class=\"spread\">" + percent(missing, rows) +
                           "</span>"
                     : "none";
}

std::string type_text(const Json& column) {
  const Json& categories = at_path(column, {"categories"});
  std::string text = html::escape(text_at_path(column, {"type"}));
  return categories.is_number_integer() ? text + ", " + html::count(categories) + " values" : text;
}

std::string shape_of(const Json& port) {
  std::string text;
  for (const Json& extent : at_path(port, {"shape"}))
    text += (text.empty() ? "" : " × ") + html::fact(extent);
  return text.empty() ? "1" : text;
}

std::string unfolded_or_folded(std::string_view title, std::size_t rows, const std::string& table) {
  if (rows <= kMostShownUnfolded)
    return table;
  return "<details class=\"inner\"><summary>" + std::string(title) + "</summary>" + table +
         "</details>";
}

std::string columns_table(const Json& inputs, double rows) {
  Rows cells;
  for (const Json& port : inputs) {
    for (const Json& column : at_path(port, {"columns"})) {
      cells.push_back({html::escape(text_at_path(column, {"name"})), type_text(column),
                       missing_text(column, rows)});
    }
  }
  if (cells.empty())
    return {};
  return unfolded_or_folded(
      std::to_string(cells.size()) + " columns", cells.size(),
      html::scrolling(html::table("", {"column", "type", "missing"}, cells), true));
}

std::string classes_table(const Json& classes, double rows) {
  Rows cells;
  for (const Json& one : classes) {
    const double count = amount_at(one, "rows");
    cells.push_back(
        {html::escape(text_at_path(one, {"name"})), html::amount(count), percent(count, rows)});
  }
  return unfolded_or_folded(
      std::to_string(cells.size()) + " classes", cells.size(),
      html::scrolling(html::table("", {"class", "rows", "share"}, cells), true));
}

std::string numbers_table(const Json& numbers, const std::string& name) {
  Rows cells;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::vector<std::string>& row = cells.emplace_back();
    row.push_back(html::escape(numbers.size() == 1 ? name : name + "." + std::to_string(i)));
    for (std::string_view key : {"smallest", "mean", "largest"})
      row.push_back(html::number(at_path(numbers[i], {key})));
  }
  return unfolded_or_folded(
      std::to_string(cells.size()) + " numbers a row", cells.size(),
      html::scrolling(html::table("", {"target", "smallest", "mean", "largest"}, cells), true));
}

std::string target_table(const Json& target, double rows) {
  if (const Json& classes = at_path(target, {"classes"}); classes.is_array() && !classes.empty())
    return classes_table(classes, rows);
  const Json& numbers = at_path(target, {"numbers"});
  return numbers.is_array() && !numbers.empty()
             ? numbers_table(numbers, text_at_path(target, {"name"}))
             : std::string();
}

}  // namespace

std::string data_section(const ReportInput& input) {
  const Json& data = at_path(input.result, {"data"});
  if (!data.is_object())
    return {};
  // Of a stream, what is described are its first rows.
  const bool is_stream = data.contains("described_rows");
  const double rows = amount_at(data, is_stream ? "described_rows" : "rows");
  const Json& inputs = at_path(data, {"inputs"});
  const bool is_counted = at_path(data, {"rows"}).is_number();
  Rows facts{{"rows", is_counted ? html::amount(amount_at(data, "rows")) : "a stream"}};
  if (is_stream)
    facts.push_back({"described here", "the first " + html::amount(rows)});
  if (inputs.is_array()) {
    for (const Json& port : inputs)
      facts.push_back({"input " + html::escape(text_at_path(port, {"name"})), shape_of(port)});
  }
  const Json& targets = at_path(data, {"targets"});
  std::string tables;
  if (targets.is_array()) {
    for (const Json& target : targets) {
      const std::string name = html::escape(text_at_path(target, {"name"}));
      facts.push_back({"target", name});
      tables +=
          html::card(targets.size() == 1 ? "Target" : "Target " + name, target_table(target, rows));
    }
  }
  const std::string columns = inputs.is_array() ? columns_table(inputs, rows) : std::string();
  return html::side_by_side(html::card("Data", html::table("text facts", {}, facts) + columns) +
                            tables);
}

}  // namespace treadle::report
