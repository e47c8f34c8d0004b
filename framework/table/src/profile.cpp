#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <treadle/base/error.h>

#include <treadle/table/number_text.h>
#include <treadle/table/table_data.h>

#include "values/label_dictionary.h"

namespace treadle::table {
namespace {

/// So many different numbers are quantities, whatever else is in the column.
constexpr std::int64_t kMostNumbers = 1024;

/// Counts different texts, up to a number of them.
class TextCounts {
 public:
  /// Expects is_complete().
  void add(std::string_view text) {
    const auto number = static_cast<std::size_t>(texts_.add(text));
    if (number == counts_.size())
      counts_.push_back(0);
    ++counts_[number];
  }

  bool is_complete() const { return is_complete_; }
  std::int64_t size() const { return texts_.size(); }

  /// Keeps the counts so far as an example.
  void give_up() {
    is_complete_ = false;
    examples_ = frequent();
    texts_ = LabelDictionary();
    counts_ = {};
  }

  /// The most frequent ones; of equally frequent ones the first.
  std::vector<CountedValue> frequent() const {
    if (!is_complete_ && counts_.empty())
      return examples_;
    std::vector<std::size_t> order(counts_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto most = std::min(order.size(), ColumnProfile::kMostListed);
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most), order.end(),
                      [&](std::size_t a, std::size_t b) {
                        return counts_[a] != counts_[b] ? counts_[a] > counts_[b] : a < b;
                      });
    std::vector<CountedValue> values;
    for (std::size_t i = 0; i < most; ++i)
      values.push_back({texts_.labels()[order[i]], counts_[order[i]]});
    return values;
  }

  std::int64_t rarest() const {
    return counts_.empty() ? 0 : *std::min_element(counts_.begin(), counts_.end());
  }

 private:
  LabelDictionary texts_;
  std::vector<std::int64_t> counts_;
  std::vector<CountedValue> examples_;
  bool is_complete_ = true;
};

/// "01234": as postal codes are written, and quantities are not.
bool is_padded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  return text.size() > 1 && text.front() == '0' &&
         text.find_first_not_of(kDigits) == std::string_view::npos;
}

class ColumnCounter {
 public:
  void add(std::string_view text, const DateFormat& dates) {
    double number = 0;
    DateFormat::Time time;
    if (read_whole_number(text, number) && std::isfinite(number)) {
      add_number(number);
      profile_.padded += is_padded(text) ? 1 : 0;
    } else if (dates.read(text, time)) {
      ++profile_.dates;
      profile_.times += std::fmod(time.seconds + time.ahead, kSecondsOfDay) != 0 ? 1 : 0;
      is_rising_ = false;
    } else {
      is_rising_ = false;
      if (odd_texts_.is_complete())
        count(odd_texts_, text, LabelDictionary::kMostLabels);
    }
    if (all_.is_complete()) {
      const bool is_quantities =
          odd_texts_.is_complete() && odd_texts_.size() == 0 && profile_.padded == 0;
      count(all_, text, is_quantities ? kMostNumbers : LabelDictionary::kMostLabels);
    }
  }
  void add_missing() {
    ++profile_.missing;
    is_rising_ = false;
  }

  ColumnProfile finish(std::string name, bool has_name) {
    profile_.name = std::move(name);
    profile_.has_name = has_name;
    profile_.is_rising = is_rising_ && profile_.numbers > 0;
    profile_.odd_texts = odd_texts_.frequent();
    if (all_.is_complete()) {
      profile_.distinct = all_.size();
      profile_.rarest = all_.rarest();
      profile_.frequent = all_.frequent();
    }
    return std::move(profile_);
  }

 private:
  static constexpr double kSecondsOfDay = 86400;

  static void count(TextCounts& texts, std::string_view text, std::int64_t most) {
    texts.add(text);
    if (texts.size() > most)
      texts.give_up();
  }

  void add_number(double number) {
    is_rising_ = is_rising_ && (profile_.numbers == 0 || number > last_);
    last_ = number;
    profile_.least = profile_.numbers == 0 ? number : std::min(profile_.least, number);
    profile_.greatest = profile_.numbers == 0 ? number : std::max(profile_.greatest, number);
    ++profile_.numbers;
    profile_.integers += std::floor(number) == number ? 1 : 0;
  }

  ColumnProfile profile_;
  TextCounts all_;
  TextCounts odd_texts_;
  double last_ = 0;
  bool is_rising_ = true;
};

/// Counts every cell, as text.
class ProfileSink final : public RowSink {
 public:
  ProfileSink(const TableSource& source, std::size_t columns,
              const std::vector<std::string>& missing_values, const DateFormat& dates)
      : RowSink(columns),
        source_(source),
        missing_values_(missing_values),
        dates_(dates),
        counters_(columns) {
    std::fill(wants_.begin(), wants_.end(), Wants::kText);
  }

  TableProfile finish(const TableColumns& columns) {
    TableProfile profile;
    profile.missing_values = missing_values_;
    profile.rows = rows_;
    const std::vector<std::string> numbered = numbered_columns(columns.names.size());
    for (std::size_t i = 0; i < counters_.size(); ++i) {
      const bool has_name = columns.are_named && !columns.names[i].empty();
      profile.columns.push_back(
          counters_[i].finish(has_name ? columns.names[i] : numbered[i], has_name));
    }
    return profile;
  }

 private:
  void do_begin_row() override {}
  void do_text(std::size_t column, std::string_view value) override {
    if (std::find(missing_values_.begin(), missing_values_.end(), value) != missing_values_.end()) {
      counters_[column].add_missing();
    } else {
      counters_[column].add(value, dates_);
    }
  }
  void do_missing(std::size_t column) override { counters_[column].add_missing(); }
  void do_end_row() override { ++rows_; }
  void do_bad_row(const std::string& sentence) override {
    throw DataError(source_.place_of(position()) + ": " + sentence);
  }

  const TableSource& source_;
  const std::vector<std::string>& missing_values_;
  const DateFormat& dates_;
  std::vector<ColumnCounter> counters_;
  std::int64_t rows_ = 0;
};

}  // namespace

TableProfile profile_table(TableSource& source, const std::vector<std::string>& missing_values,
                           const DateFormat& dates) {
  const TableColumns& columns = source.columns();
  const auto count = static_cast<std::int64_t>(columns.names.size());
  if (count > kMostColumns) {
    throw DataError(columns.place + ": expected at most " + std::to_string(kMostColumns) +
                    " columns, got " + std::to_string(count));
  }
  ProfileSink sink(source, columns.names.size(), missing_values, dates);
  source.read(sink);
  return sink.finish(columns);
}

}  // namespace treadle::table
