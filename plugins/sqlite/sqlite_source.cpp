#include "sqlite_source.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/base/system/patience.h>
#include <treadle/base/utf8.h>
#include <treadle/search/storage/stored_text.h>

namespace treadle::sqlite {
namespace {

using table::RowSink;

constexpr std::int64_t kExactIntegers = std::int64_t{1} << 53;  // in a double

/// Takes rows for their hash alone.
class NoSink final : public RowSink {
 public:
  explicit NoSink(std::size_t columns) : RowSink(columns) {}

 private:
  void do_begin_row() override {}
  void do_text(std::size_t, std::string_view) override {}
  void do_missing(std::size_t) override {}
  void do_end_row() override {}
  void do_bad_row(const std::string&) override {}
};

std::vector<std::string> names_of(const SqliteStatement& statement) {
  std::vector<std::string> names;
  for (int i = 0; i < sqlite3_column_count(statement.handle()); ++i) {
    const char* const name = sqlite3_column_name(statement.handle(), i);
    names.emplace_back(name == nullptr ? "" : name);
  }
  return names;
}

}  // namespace

SqliteSource::SqliteSource(SqliteQuery query, std::shared_ptr<table::QueryResult> result)
    : query_(std::move(query)), result_(std::move(result)) {}

// Whatever fails in a database that is read is a mistake of the data.
template <typename Work>
auto SqliteSource::patiently(Work&& work) {
  Patience patience(kLockPatience, kLongestLockWait);
  for (;;) {
    try {
      return work();
    } catch (const SqliteBusy&) {
      if (database_ != nullptr)
        database_->rollback();
      if (!patience.wait())
        throw DataError(do_shown() + ": another process has held the lock of the database for " +
                        nlohmann::json(patience.limit().count()).dump() +
                        " s; end it, or let it go on if it was stopped, and try again");
    } catch (const StorageError& error) {
      throw DataError(error.what());
    }
  }
}

table::TableColumns SqliteSource::do_open() {
  query_.options.expect_given(query_.path.string());
  patiently([&] {
    statement_.reset();
    database_ = std::make_unique<SqliteDatabase>(query_.path, SqliteDatabase::Access::kRead);
    prepare();
  });
  table::TableColumns columns;
  columns.names = names_;
  columns.keys = keys_;
  columns.place = do_shown();
  columns.no_rows = "no rows; look at the table, or at the conditions of the query";
  return columns;
}

void SqliteSource::find_primary_key() {
  const std::string& name = query_.options.table;
  SqliteStatement view = database_->query(
      "SELECT 1 FROM sqlite_master WHERE type = 'view' AND name = ?", std::string_view(name));
  if (view.step())
    throw DataError(do_shown() +
                    ": is a view, whose rows have no order of their own; give the "
                    "columns that order them as \"order_by\"");
  SqliteStatement row = database_->query(
      "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", std::string_view(name));
  while (row.step())
    keys_.push_back(row.text(0).value_or(""));
}

void SqliteSource::prepare() {
  keys_ = query_.options.order_by;
  const bool is_query = !query_.options.query.empty();
  const std::string all = " FROM " + table::quoted_identifier(query_.options.table);
  const SqliteStatement asked(database_->query(is_query ? query_.options.query : "SELECT *" + all));
  if (keys_.empty())
    find_primary_key();
  names_ = names_of(asked);
  if (names_.empty())
    throw DataError(do_shown() + ": returns no columns; write one SELECT");
  if (sqlite3_stmt_readonly(asked.handle()) == 0)
    throw DataError(do_shown() + ": changes the database; write one SELECT");
  const auto parameters = static_cast<std::size_t>(sqlite3_bind_parameter_count(asked.handle()));
  if (parameters != query_.options.parameters.size())
    throw DataError(do_shown() + ": has " + std::to_string(parameters) + " places for parameters" +
                    " (?1, ?2, …), and \"parameters\" has " +
                    std::to_string(query_.options.parameters.size()));

  std::vector<bool> is_key(names_.size());
  std::string order;
  for (const std::string& key : keys_) {
    const auto found = std::find(names_.begin(), names_.end(), key);
    if (found == names_.end())
      throw DataError(do_shown() + ": \"order_by\" names " + quote_text(key) +
                      ", which is no column of it (there are: " + quoted_list(names_) + ")" +
                      did_you_mean(key, names_));
    is_key[static_cast<std::size_t>(found - names_.begin())] = true;
    // By bytes: two texts that a collation takes for the same would have no order.
    order +=
        (order.empty() ? " ORDER BY " : ", ") + table::quoted_identifier(key) + " COLLATE BINARY";
  }
  has_row_id_ = order.empty();
  if (has_row_id_)
    order = " ORDER BY rowid";
  const std::string from = is_query      ? "SELECT * FROM (\n" + query_.options.query + "\n)"
                           : has_row_id_ ? "SELECT *, rowid" + all
                                         : "SELECT *" + all;
  statement_.emplace(database_->query(from + order + " LIMIT -1 OFFSET ?" +
                                      std::to_string(query_.options.parameters.size() + 1)));
  rows_ = table::QueryRows(
      query_.options.identity() +
          nlohmann::json(names_).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace),
      std::move(is_key));
}

void SqliteSource::bind(SqliteStatement& statement) const {
  using Type = nlohmann::json::value_t;
  for (const nlohmann::json& value : query_.options.parameters) {
    switch (value.type()) {
      case Type::boolean:
        statement.bind(std::int64_t{value.get<bool>()});
        break;
      case Type::number_integer:
      case Type::number_unsigned:
        statement.bind(value.get<std::int64_t>());
        break;
      case Type::number_float:
        statement.bind(value.get<double>());
        break;
      case Type::string:
        statement.bind(std::string_view(value.get_ref<const std::string&>()));
        break;
      default:
        statement.bind(nullptr);
    }
  }
  statement.bind(rows_.position());
}

void SqliteSource::begin() {
  patiently([&] {
    database_->rollback();
    database_->run("BEGIN");
    const std::vector<std::string> before = names_;
    const std::int64_t first = rows_.position();
    prepare();
    rows_.restart(first);
    last_row_id_.reset();
    if (names_ != before)
      throw DataError(do_shown() + ": its columns changed while they were in use: " +
                      quoted_list(before) + " before, " + quoted_list(names_) + " now");
    bind(*statement_);
    has_row_ = statement_->step();
  });
  is_reading_ = true;
}

// Pages of a damaged database may lead to themselves, and reading would never end.
void SqliteSource::expect_rising_row_id(std::int64_t position) {
  const std::int64_t row_id =
      sqlite3_column_int64(statement_->handle(), static_cast<int>(names_.size()));
  if (last_row_id_ && row_id <= *last_row_id_)
    table::expect_certain_order(table::QueryRows::Order::kReversed, do_place_of(position),
                                {"rowid"});
  last_row_id_ = row_id;
}

bool SqliteSource::step() {
  try {
    return statement_->step();
  } catch (const SqliteBusy&) {
    throw DataError(do_place_of(rows_.position()) + ": the lock of the database was lost");
  } catch (const StorageError& error) {
    throw DataError(do_place_of(rows_.position()) + ": " + error.what());
  }
}

void SqliteSource::end() {
  statement_->reset();
  database_->rollback();
  is_reading_ = false;
  if (const auto digest = rows_.digest(); digest && result_ != nullptr)
    result_->expect_same(do_shown(), rows_.position(), *digest);
}

void SqliteSource::do_go_to(const Bookmark& place) {
  if (is_reading_) {
    statement_->reset();
    database_->rollback();
    is_reading_ = false;
  }
  has_row_ = false;
  rows_.restart(place.position);
}

bool SqliteSource::do_read(RowSink& sink, std::int64_t rows) {
  if (!is_reading_)
    begin();
  for (; rows > 0 && has_row_; --rows) {
    give_row(sink);
    const std::int64_t position = rows_.position();
    if (const auto order = rows_.end_row(); order != table::QueryRows::Order::kCertain)
      table::expect_certain_order(order, do_place_of(position), keys_);
    if (has_row_id_)
      expect_rising_row_id(position);
    has_row_ = step();
  }
  if (!has_row_)
    end();
  return has_row_;
}

void SqliteSource::give_row(RowSink& sink) {
  sqlite3_stmt* const row = statement_->handle();
  const std::size_t columns = names_.size();
  const char* bad = nullptr;
  std::size_t bad_column = 0;
  sink.begin_row(rows_.position());
  for (std::size_t column = 0; column < columns; ++column) {
    const auto index = static_cast<int>(column);
    switch (sqlite3_column_type(row, index)) {
      case SQLITE_INTEGER: {
        const std::int64_t value = sqlite3_column_int64(row, index);
        rows_.integer(column, value);
        if (value < -kExactIntegers || value > kExactIntegers ||
            !sink.put(column, static_cast<double>(value)))
          sink.integer(column, value);
        break;
      }
      case SQLITE_FLOAT: {
        const double value = sqlite3_column_double(row, index);
        rows_.number(column, value);
        sink.number(column, value);
        break;
      }
      case SQLITE_TEXT: {
        const auto* const bytes = reinterpret_cast<const char*>(sqlite3_column_text(row, index));
        const auto size = static_cast<std::size_t>(sqlite3_column_bytes(row, index));
        const std::string_view value(bytes == nullptr ? "" : bytes, size);
        rows_.text(column, value);
        if (sink.wants(column) == RowSink::Wants::kText && first_bad_utf8(value)) {
          bad = "is not UTF-8";
          bad_column = column;
        } else {
          sink.text(column, value);
        }
        break;
      }
      case SQLITE_BLOB: {
        const auto size = static_cast<std::size_t>(sqlite3_column_bytes(row, index));
        rows_.text(column, {static_cast<const char*>(sqlite3_column_blob(row, index)), size});
        if (sink.wants(column) != RowSink::Wants::kNothing) {
          bad = "is a blob; leave out the column, or convert it in the query";
          bad_column = column;
        }
        break;
      }
      default:
        rows_.missing(column);
        sink.missing(column);
    }
  }
  if (bad == nullptr)
    sink.end_row();
  else
    sink.bad_row("column " + quote_text(names_[bad_column]) + " " + bad);
}

std::string SqliteSource::do_shown() const {
  return query_.path.string() + (query_.options.query.empty()
                                     ? ", table " + quote_text(query_.options.table)
                                     : ", the query");
}

std::string SqliteSource::do_place_of(std::int64_t position) const {
  return do_shown() + ", row " + std::to_string(position + 1);
}

std::string SqliteSource::do_hash() const {
  if (result_ != nullptr) {
    if (const auto digest = result_->digest())
      return *digest;
  }
  SqliteSource other(query_, result_);
  NoSink sink(other.columns().names.size());
  other.read(sink);
  return other.rows_.digest().value_or("");
}

}  // namespace treadle::sqlite
