#include <treadle/table/query_options.h>

#include <cctype>

#include <treadle/base/error.h>

namespace treadle::table {
namespace {

// A statement that is written by hand may end with a semicolon.
std::string without_end(std::string text) {
  while (!text.empty() &&
         (text.back() == ';' || std::isspace(static_cast<unsigned char>(text.back())) != 0))
    text.pop_back();
  return text;
}

}  // namespace

void QueryOptions::expect_given(const std::string& database) const {
  if (query.empty() && table.empty())
    throw DataError(database + ": needs \"table\", or \"query\" with \"order_by\"");
}

QueryOptions::QueryOptions(const Config& config)
    : query(without_end(config.get_or<std::string>("query", ""))),
      table(config.get_or<std::string>("table", "")) {
  if (config.has("query") && config.has("table"))
    config.fail("table", "is given beside \"query\"; leave out one of them");
  if (config.has("query") && query.empty())
    config.fail("query", "is empty; write one SELECT");
  if (config.has("parameters")) {
    if (query.empty())
      config.fail("parameters", "have no \"query\" to belong to");
    for (const nlohmann::json& value : config.json().at("parameters"))
      parameters.push_back(value);
  }
  if (config.has("order_by"))
    order_by = config.get<std::vector<std::string>>("order_by");
  if (!query.empty() && order_by.empty()) {
    config.fail("query",
                "needs \"order_by\", the columns of its result that order the rows: a database "
                "returns them in any order, and a training needs the same order each time");
  }
}

std::string QueryOptions::identity() const {
  return nlohmann::json{query, table, parameters, order_by}.dump(
      -1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string quoted_identifier(std::string_view name) {
  std::string quoted = "\"";
  for (const char character : name) {
    if (character == '"')
      quoted += '"';
    quoted += character;
  }
  return quoted + '"';
}

std::string quoted_table(std::string_view name) {
  const std::size_t dot = name.find('.');
  if (dot == name.npos)
    return quoted_identifier(name);
  return quoted_identifier(name.substr(0, dot)) + "." + quoted_identifier(name.substr(dot + 1));
}

}  // namespace treadle::table
