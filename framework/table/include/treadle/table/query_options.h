#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/config.h>

namespace treadle::table {

/// The parameters of sources that are queries: `query` or `table`, `parameters` and `order_by`.
/// Values never become text of an SQL statement: the database binds them.
struct QueryOptions {
  QueryOptions() = default;
  /// Fails with the place in the document where a query lacks `order_by`, and where both `query`
  /// and `table` are given.
  explicit QueryOptions(const Config& config);

  /// Throws a DataError where neither `query` nor `table` is given.
  void expect_given(const std::string& database) const;

  std::string query;  ///< one SELECT, without a semicolon at its end; empty: `table`
  std::string table;
  std::vector<nlohmann::json> parameters;  ///< numbers, texts, booleans and null
  std::vector<std::string> order_by;

  /// The query as it identifies its result in a content hash: text, parameters and order.
  std::string identity() const;
};

/// An identifier of SQL in double quotes.
std::string quoted_identifier(std::string_view name);
/// The same of a table that may be written with its schema: sales.orders.
std::string quoted_table(std::string_view name);

}  // namespace treadle::table
