#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/hash.h>

namespace treadle::table {

/// The result of a query as it was when it was first read whole. Shared by the sources of one data
/// provider: a later reading that finds other rows is an error. Thread-safe.
class QueryResult {
 public:
  /// Throws DataError where an earlier reading had other rows; names both numbers of rows.
  void expect_same(const std::string& shown, std::int64_t rows, const std::string& digest);
  /// Of the first reading; nothing before its end.
  std::optional<std::string> digest() const;

 private:
  mutable std::mutex mutex_;
  std::int64_t rows_ = 0;
  std::string digest_;  // empty: nothing was read yet
};

/// Follows the rows of a query as they are read: counts and hashes them, and verifies that their
/// order is certain, which it is where no two rows have the same key. Values come column by column.
///
///     rows.integer(0, 7);
///     rows.text(1, "Ulm");
///     if (rows.end_row() != QueryRows::Order::kCertain) …
class QueryRows {
 public:
  enum class Order : std::uint8_t {
    kCertain,
    kSame,     ///< the key of the row before
    kReversed  ///< an integer as key that is less than that of the row before: no sorted rows
  };

  QueryRows() = default;
  /// `identity` begins the hash; `keys`: for each column, whether it is a part of the key. Without
  /// any, the order is certain for another reason.
  QueryRows(std::string_view identity, std::vector<bool> keys);

  /// Begins anew with the row `first`, counted from 0. The hash then covers the rows from there on.
  void restart(std::int64_t first);

  void integer(std::size_t column, std::int64_t value);
  void number(std::size_t column, double value);
  void text(std::size_t column, std::string_view value);
  void missing(std::size_t column);
  /// The place of the row behind the one before.
  Order end_row();

  /// The number of the next row.
  std::int64_t position() const { return position_; }
  /// The row that reading began with.
  std::int64_t first() const { return first_; }
  /// Of the identity and the rows from first() on.
  std::string trail() const;
  /// Of the identity and all rows; nothing where reading began behind the first row.
  std::optional<std::string> digest() const {
    return first_ == 0 ? std::optional(trail()) : std::nullopt;
  }

 private:
  void add(std::size_t column, char type, const void* bytes, std::size_t size);

  std::string identity_;
  std::vector<bool> keys_;
  bool has_keys_ = false;
  bool has_one_key_ = false;
  std::int64_t first_ = 0;
  std::int64_t position_ = 0;
  ContentHash hash_;
  std::string buffer_;
  std::string key_;
  std::string last_key_;
  std::optional<std::int64_t> integer_key_;
  std::optional<std::int64_t> last_integer_key_;
};

/// Throws DataError unless `order`, of the row at `place`, is certain. `keys`: the columns of
/// order_by, for the message.
void expect_certain_order(QueryRows::Order order, const std::string& place,
                          const std::vector<std::string>& keys);

}  // namespace treadle::table
