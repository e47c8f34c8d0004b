#include "postgresql_source.h"

#include <libpq-fe.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

namespace treadle::postgresql {
namespace {

using table::RowSink;

constexpr std::int64_t kExactIntegers = std::int64_t{1} << 53;  // in a double
// The name of a server that was never there may be wrong.
constexpr Patience::Duration kUnknownServerPatience{0.5};
constexpr const char* kBatch = "FETCH FORWARD 4096 FROM treadle_rows";

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

/// A value as PostgreSQL's text has it, for a place $1; null is no text.
std::string text_of(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string_view field(const pg_result* result, int row, int column) {
  return {PQgetvalue(result, row, column),
          static_cast<std::size_t>(PQgetlength(result, row, column))};
}

// The columns of the query inside of the statement that orders them: its own names may be double.
std::string inner_name(std::size_t column) {
  return "c" + std::to_string(column + 1);
}

}  // namespace

PostgresqlSource::PostgresqlSource(PostgresqlQuery query,
                                   std::shared_ptr<table::QueryResult> result)
    : query_(std::move(query)),
      result_(std::move(result)),
      connection_(query_.connection, "\"connection\" of the data \"postgresql\"") {}

// Whatever fails in a database that is read is a mistake of the data.
template <typename Work>
void PostgresqlSource::patiently(Work&& work) {
  const bool is_known = was_there_ || (result_ != nullptr && result_->digest());
  Patience patience(is_known ? kServerPatience : kUnknownServerPatience, kLongestServerWait);
  for (;;) {
    try {
      try {
        connection_.connect(patience);
        was_there_ = true;
        return work();
      } catch (const PostgresqlConnection::Unavailable& now) {
        connection_.wait_or_fail(patience, now);
      }
    } catch (const StorageError& error) {
      throw DataError(error.what());
    }
  }
}

PostgresqlConnection::Result PostgresqlSource::run(const std::string& sql,
                                                   const std::vector<std::string>& values) {
  std::vector<const char*> texts;
  for (const std::string& value : values)
    texts.push_back(value.c_str());
  return connection_.ask([&](PGconn* connection) {
    return PQsendQueryParams(connection, sql.c_str(), static_cast<int>(texts.size()), nullptr,
                             texts.data(), nullptr, nullptr, 0);
  });
}

table::TableColumns PostgresqlSource::do_open() {
  query_.options.expect_given("PostgreSQL");
  patiently([&] {
    describe();
    rows_ =
        table::QueryRows(query_.options.identity() + nlohmann::json(names_).dump(), key_columns());
  });
  table::TableColumns columns;
  columns.names = names_;
  columns.keys = keys_;
  columns.place = do_shown();
  columns.no_rows = "no rows; look at the table, or at the conditions of the query";
  return columns;
}

std::vector<PostgresqlSource::QueryColumn> PostgresqlSource::columns_of(const std::string& sql) {
  connection_.ask(
      [&](PGconn* connection) { return PQsendPrepare(connection, "", sql.c_str(), 0, nullptr); });
  const auto described =
      connection_.ask([](PGconn* connection) { return PQsendDescribePrepared(connection, ""); });
  const auto parameters = static_cast<std::size_t>(PQnparams(described.get()));
  if (parameters != query_.options.parameters.size())
    throw DataError(do_shown() + ": has " + std::to_string(parameters) +
                    " places for parameters ($1, $2, …), and \"parameters\" has " +
                    std::to_string(query_.options.parameters.size()));
  std::vector<QueryColumn> columns;
  std::string types;
  for (int i = 0; i < PQnfields(described.get()); ++i) {
    columns.push_back({PQfname(described.get(), i), PQftype(described.get(), i)});
    types += (i == 0 ? "" : ",") + std::to_string(columns.back().type);
  }
  if (columns.empty())
    throw DataError(do_shown() + ": returns no columns; write one SELECT");
  const auto categories =
      run("SELECT oid, typcategory FROM pg_type WHERE oid = ANY($1::oid[])", {"{" + types + "}"});
  for (QueryColumn& column : columns) {
    char category = 'X';
    for (int row = 0; row < PQntuples(categories.get()); ++row) {
      if (field(categories.get(), row, 0) == std::to_string(column.type))
        category = field(categories.get(), row, 1)[0];
    }
    column.reading = reading_of(column.type, category);
  }
  return columns;
}

void PostgresqlSource::find_primary_key() {
  const auto result = run(
      "SELECT a.attname FROM pg_index i CROSS JOIN unnest(i.indkey::int2[]) WITH ORDINALITY"
      " AS k(number, place) JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number"
      " WHERE i.indisprimary AND i.indrelid = $1::regclass ORDER BY k.place",
      {table::quoted_table(query_.options.table)});
  for (int row = 0; row < PQntuples(result.get()); ++row)
    keys_.emplace_back(field(result.get(), row, 0));
  if (keys_.empty())
    throw DataError(do_shown() +
                    ": has no primary key, so its rows have no order; give the columns "
                    "that order them as \"order_by\"");
}

void PostgresqlSource::describe() {
  const bool is_query = !query_.options.query.empty();
  columns_ = columns_of(is_query ? query_.options.query
                                 : "SELECT * FROM " + table::quoted_table(query_.options.table));
  names_.clear();
  for (const QueryColumn& column : columns_)
    names_.push_back(column.name);
  keys_ = query_.options.order_by;
  if (keys_.empty())
    find_primary_key();
}

std::vector<bool> PostgresqlSource::key_columns() const {
  std::vector<bool> is_key(names_.size());
  for (const std::string& key : keys_) {
    const auto found = std::find(names_.begin(), names_.end(), key);
    if (found == names_.end())
      throw DataError(do_shown() + ": \"order_by\" names " + quote_text(key) +
                      ", which is no column of it (there are: " + quoted_list(names_) + ")" +
                      did_you_mean(key, names_));
    is_key[static_cast<std::size_t>(found - names_.begin())] = true;
  }
  return is_key;
}

std::string PostgresqlSource::statement() const {
  std::string values;
  std::string inner;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const QueryColumn& column = columns_[i];
    values += (i == 0 ? "" : ", ") + cast(column.reading, column.type, inner_name(i));
    inner += (i == 0 ? "" : ", ") + inner_name(i);
  }
  std::string order;
  for (const std::string& key : keys_) {
    const auto at =
        static_cast<std::size_t>(std::find(names_.begin(), names_.end(), key) - names_.begin());
    order += (order.empty() ? "" : ", ") + inner_name(at);
  }
  const std::string from = query_.options.query.empty()
                               ? "SELECT * FROM " + table::quoted_table(query_.options.table)
                               : query_.options.query;
  return "DECLARE treadle_rows NO SCROLL CURSOR FOR SELECT " + values + " FROM (\n" + from +
         "\n) AS treadle_query(" + inner + ") ORDER BY " + order;
}

void PostgresqlSource::begin(std::int64_t first) {
  batch_.reset();
  next_ = count_ = 0;
  run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  run("SET LOCAL lock_timeout = '30s'");
  run("SET LOCAL cursor_tuple_fraction = 1");
  const std::vector<QueryColumn> before = columns_;
  describe();
  if (columns_ != before)
    throw DataError(do_shown() + ": its columns or their types changed while they were in use");
  std::vector<std::string> values;
  std::vector<const char*> texts;
  for (const nlohmann::json& value : query_.options.parameters)
    values.push_back(text_of(value));
  for (std::size_t i = 0; i < values.size(); ++i)
    texts.push_back(query_.options.parameters[i].is_null() ? nullptr : values[i].c_str());
  const std::string sql = statement();
  connection_.ask([&](PGconn* connection) {
    return PQsendQueryParams(connection, sql.c_str(), static_cast<int>(texts.size()), nullptr,
                             texts.data(), nullptr, nullptr, 0);
  });
  if (first > 0)
    run("MOVE FORWARD " + std::to_string(first) + " FROM treadle_rows");
  fetch();
}

void PostgresqlSource::fetch() {
  batch_ = connection_.ask([](PGconn* connection) {
    return PQsendQueryParams(connection, kBatch, 0, nullptr, nullptr, nullptr, nullptr, 1);
  });
  next_ = 0;
  count_ = PQntuples(batch_.get());
}

void PostgresqlSource::go_on(std::int64_t position, const std::string& trail) {
  const std::int64_t first = rows_.first();
  NoSink sink(columns_.size());
  rows_.restart(first);
  begin(first);
  while (count_ > 0 && rows_.position() < position) {
    give_row(sink, next_++);
    static_cast<void>(rows_.end_row());
    if (next_ == count_)
      fetch();
  }
  if (rows_.position() != position || rows_.trail() != trail)
    throw DataError(do_shown() + ": the first " + std::to_string(position - first) +
                    " rows changed while the server was away; start again");
}

void PostgresqlSource::end() {
  connection_.close();
  batch_.reset();
  is_reading_ = false;
  if (const auto digest = rows_.digest(); digest && result_ != nullptr)
    result_->expect_same(do_shown(), rows_.position(), *digest);
}

void PostgresqlSource::do_go_to(const Bookmark& place) {
  connection_.close();
  batch_.reset();
  is_reading_ = false;
  rows_.restart(place.position);
}

bool PostgresqlSource::do_read(RowSink& sink, std::int64_t rows) {
  if (!is_reading_) {
    rows_.restart(rows_.position());
    patiently([&] { begin(rows_.first()); });
    is_reading_ = true;
  }
  for (; rows > 0 && count_ > 0; --rows) {
    const std::int64_t position = rows_.position();
    give_row(sink, next_++);
    if (const auto order = rows_.end_row(); order != table::QueryRows::Order::kCertain)
      table::expect_certain_order(order, do_place_of(position), keys_);
    if (next_ == count_) {
      bool was_lost = false;
      const std::int64_t next = rows_.position();
      const std::string trail = rows_.trail();
      patiently([&] {
        // A new connection has no cursor.
        if (std::exchange(was_lost, true))
          go_on(next, trail);
        else
          fetch();
      });
    }
  }
  if (count_ == 0)
    end();
  return count_ > 0;
}

void PostgresqlSource::give_row(RowSink& sink, int row) {
  const pg_result* const batch = batch_.get();
  std::string bad;
  const auto time = [&](std::size_t column, const std::optional<table::Timestamp>& value) {
    if (value)
      sink.time(column, *value);
    else if (sink.wants(column) != RowSink::Wants::kNothing)
      bad = "column " + quote_text(names_[column]) + " is infinite";
  };
  sink.begin_row(rows_.position());
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    const auto index = static_cast<int>(column);
    if (PQgetisnull(batch, row, index) != 0) {
      rows_.missing(column);
      sink.missing(column);
      continue;
    }
    const std::string_view bytes = field(batch, row, index);
    switch (columns_[column].reading) {
      case Reading::kBoolean:
      case Reading::kInteger: {
        const std::int64_t value = integer_of(bytes);
        rows_.integer(column, value);
        if (value < -kExactIntegers || value > kExactIntegers ||
            !sink.put(column, static_cast<double>(value)))
          sink.integer(column, value);
        break;
      }
      case Reading::kFloat:
      case Reading::kDouble: {
        const double value = float_of(bytes);
        rows_.number(column, value);
        sink.number(column, value);
        break;
      }
      case Reading::kDate:
        rows_.text(column, bytes);
        time(column, date_of(bytes));
        break;
      case Reading::kTimestamp:
        rows_.text(column, bytes);
        time(column, timestamp_of(bytes));
        break;
      case Reading::kText:
        rows_.text(column, bytes);
        sink.text(column, bytes);
        break;
      case Reading::kRefused:
        rows_.text(column, bytes);
        if (sink.wants(column) != RowSink::Wants::kNothing)
          bad = "column " + quote_text(names_[column]) +
                " has a type that no column of a table is made of (bytes, an array, an interval "
                "…); leave it out, or convert it in the query";
        break;
    }
  }
  if (bad.empty())
    sink.end_row();
  else
    sink.bad_row(bad);
}

std::string PostgresqlSource::do_shown() const {
  return connection_.name() + (query_.options.query.empty()
                                   ? ", table " + quote_text(query_.options.table)
                                   : ", the query");
}

std::string PostgresqlSource::do_place_of(std::int64_t position) const {
  return do_shown() + ", row " + std::to_string(position + 1);
}

std::string PostgresqlSource::do_hash() const {
  if (result_ != nullptr) {
    if (const auto digest = result_->digest())
      return *digest;
  }
  PostgresqlSource other(query_, result_);
  NoSink sink(other.columns().names.size());
  other.read(sink);
  return other.rows_.digest().value_or("");
}

}  // namespace treadle::postgresql
