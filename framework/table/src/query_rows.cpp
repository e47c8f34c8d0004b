#include <treadle/table/query_rows.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle::table {
namespace {

constexpr std::size_t kBuffer = 1U << 16U;

}  // namespace

void QueryResult::expect_same(const std::string& shown, std::int64_t rows,
                              const std::string& digest) {
  const std::lock_guard lock(mutex_);
  if (digest_.empty()) {
    rows_ = rows;
    digest_ = digest;
  } else if (digest_ != digest) {
    throw DataError(shown + ": the rows changed while they were in use: " + std::to_string(rows_) +
                    " rows before, " + std::to_string(rows) +
                    (rows == rows_ ? " other ones now" : " now") +
                    "; use a copy of them, or a query that later changes do not reach");
  }
}

std::optional<std::string> QueryResult::digest() const {
  const std::lock_guard lock(mutex_);
  return digest_.empty() ? std::nullopt : std::optional(digest_);
}

QueryRows::QueryRows(std::string_view identity, std::vector<bool> keys)
    : identity_(identity),
      keys_(std::move(keys)),
      has_keys_(std::find(keys_.begin(), keys_.end(), true) != keys_.end()),
      has_one_key_(std::count(keys_.begin(), keys_.end(), true) == 1) {
  restart(0);
}

void QueryRows::restart(std::int64_t first) {
  first_ = position_ = first;
  hash_ = ContentHash();
  hash_.update(identity_);
  buffer_.clear();
  key_.clear();
  last_key_.clear();
  integer_key_.reset();
  last_integer_key_.reset();
}

void QueryRows::add(std::size_t column, char type, const void* bytes, std::size_t size) {
  const auto append = [&](std::string& to) {
    to += type;
    to.append(static_cast<const char*>(bytes), size);
  };
  append(buffer_);
  if (has_keys_ && keys_[column])
    append(key_);
}

void QueryRows::integer(std::size_t column, std::int64_t value) {
  add(column, 'i', &value, sizeof value);
  if (has_one_key_ && keys_[column])
    integer_key_ = value;
}

void QueryRows::number(std::size_t column, double value) {
  // A database sorts 2 and 2.0 as equals.
  const bool is_whole = std::abs(value) < 9e15 && std::nearbyint(value) == value;
  if (is_whole)
    return integer(column, static_cast<std::int64_t>(value));
  add(column, 'd', &value, sizeof value);
}

void QueryRows::text(std::size_t column, std::string_view value) {
  const std::uint64_t size = value.size();
  add(column, 't', &size, sizeof size);
  buffer_ += value;
  if (has_keys_ && keys_[column])
    key_ += value;
}

void QueryRows::missing(std::size_t column) {
  add(column, 'n', "", 0);
}

QueryRows::Order QueryRows::end_row() {
  ++position_;
  if (buffer_.size() >= kBuffer) {
    hash_.update(buffer_);
    buffer_.clear();
  }
  if (!has_keys_)
    return Order::kCertain;
  const bool is_same = key_ == last_key_;
  std::swap(key_, last_key_);
  key_.clear();
  std::swap(integer_key_, last_integer_key_);
  const bool is_less = integer_key_ && last_integer_key_ && *last_integer_key_ < *integer_key_;
  integer_key_.reset();
  return is_same ? Order::kSame : is_less ? Order::kReversed : Order::kCertain;
}

std::string QueryRows::trail() const {
  return hash_text(hash_.digest() + buffer_ + std::to_string(position_));
}

void expect_certain_order(QueryRows::Order order, const std::string& place,
                          const std::vector<std::string>& keys) {
  if (order == QueryRows::Order::kSame)
    throw DataError(
        place + ": has the same value of \"order_by\" (" + quoted_list(keys) +
        ") as the row before it, so the order of the two is not certain; add columns to "
        "\"order_by\" until no two rows are the same in all of them");
  if (order == QueryRows::Order::kReversed)
    throw DataError(place + ": has a smaller key (" + quoted_list(keys) +
                    ") than the row before it, so the database or an index of it is damaged");
}

}  // namespace treadle::table
