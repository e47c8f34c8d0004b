#include <treadle/core/data/row_list.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include <treadle/base/error.h>

namespace treadle {
namespace {

/// Ranges pay from so many rows on: one takes as much memory as two numbers.
constexpr std::size_t kRowsPerRun = 4;

bool are_worth_it(std::size_t runs, std::size_t rows) {
  return runs * kRowsPerRun <= rows;
}

}  // namespace

RowList::RowList(std::vector<std::int64_t> rows) : size_(rows.size()) {
  if (rows.empty())
    return;
  std::size_t runs = 1;
  for (std::size_t i = 1; i < rows.size(); ++i)
    runs += rows[i] == rows[i - 1] + 1 ? 0 : 1;
  if (!are_worth_it(runs, size_)) {
    numbers_ = std::make_shared<const std::vector<std::int64_t>>(std::move(rows));
    return;
  }
  std::vector<Run> found;
  found.reserve(runs);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i == 0 || rows[i] != rows[i - 1] + 1)
      found.push_back({rows[i], i});
  }
  runs_ = std::make_shared<const std::vector<Run>>(std::move(found));
}

RowList RowList::range(std::int64_t begin, std::int64_t end) {
  Builder rows;
  rows.add(RowRange{begin, end});
  return rows.done();
}

std::size_t RowList::run_at(std::size_t position) const {
  const auto after =
      std::upper_bound(runs_->begin(), runs_->end(), position,
                       [](std::size_t at, const Run& run) { return at < run.position; });
  return static_cast<std::size_t>(after - runs_->begin()) - 1;
}

void RowList::copy(std::size_t begin, std::span<std::int64_t> rows) const {
  TREADLE_EXPECTS(begin + rows.size() <= size_, "positions lie within the list");
  if (numbers_ != nullptr) {
    std::copy_n(numbers_->begin() + static_cast<std::ptrdiff_t>(begin), rows.size(), rows.begin());
    return;
  }
  auto next = rows.begin();
  for_each_range_in(begin, begin + rows.size(), [&](const RowRange& range) {
    std::iota(next, next + range.size(), range.begin);
    next += range.size();
  });
}

RowList RowList::part(std::size_t begin, std::size_t count) const {
  TREADLE_EXPECTS(begin + count <= size_, "positions lie within the list");
  if (count == size_)
    return *this;
  if (numbers_ != nullptr) {
    const auto first = numbers_->begin() + static_cast<std::ptrdiff_t>(begin);
    return std::vector<std::int64_t>(first, first + static_cast<std::ptrdiff_t>(count));
  }
  Builder rows;
  for_each_range_in(begin, begin + count, [&](const RowRange& range) { rows.add(range); });
  return rows.done();
}

RowList RowList::at(const RowList& positions) const {
  Builder rows;
  positions.for_each_range([&](const RowRange& range) {
    TREADLE_EXPECTS(range.begin >= 0 && range.end <= static_cast<std::int64_t>(size_),
                    "positions lie within the list");
    for_each_range_in(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.end),
                      [&](const RowRange& some) { rows.add(some); });
  });
  return rows.done();
}

std::vector<std::int64_t> RowList::numbers() const {
  if (numbers_ != nullptr)
    return *numbers_;
  std::vector<std::int64_t> rows(size_);
  copy(0, rows);
  return rows;
}

bool RowList::is_ascending() const {
  if (numbers_ != nullptr) {
    return std::adjacent_find(numbers_->begin(), numbers_->end(), std::greater_equal<>()) ==
           numbers_->end();
  }
  for (std::size_t run = 1; runs_ != nullptr && run < runs_->size(); ++run) {
    if ((*runs_)[run].row <= (*this)[(*runs_)[run].position - 1])
      return false;
  }
  return true;
}

// How a list is kept is a function of its content.
bool operator==(const RowList& a, const RowList& b) {
  if (a.size_ != b.size_)
    return false;
  if (a.numbers_ != nullptr)
    return b.numbers_ != nullptr && (a.numbers_ == b.numbers_ || *a.numbers_ == *b.numbers_);
  return a.size_ == 0 || (b.runs_ != nullptr && (a.runs_ == b.runs_ || *a.runs_ == *b.runs_));
}

void RowList::Builder::add(const RowRange& rows) {
  if (rows.size() <= 0)
    return;
  if (size_ == 0 || rows.begin != next_)
    runs_.push_back({rows.begin, size_});
  size_ += static_cast<std::size_t>(rows.size());
  next_ = rows.end;
}

void RowList::Builder::add(const RowList& rows) {
  rows.for_each_range([&](const RowRange& range) { add(range); });
}

RowList RowList::Builder::done() {
  RowList list;
  list.size_ = std::exchange(size_, 0);
  std::vector<Run> runs = std::exchange(runs_, {});
  if (list.size_ == 0)
    return list;
  if (are_worth_it(runs.size(), list.size_)) {
    runs.shrink_to_fit();
    list.runs_ = std::make_shared<const std::vector<Run>>(std::move(runs));
    return list;
  }
  std::vector<std::int64_t> rows(list.size_);
  for (std::size_t run = 0; run < runs.size(); ++run) {
    const std::size_t end = run + 1 < runs.size() ? runs[run + 1].position : list.size_;
    std::iota(rows.begin() + static_cast<std::ptrdiff_t>(runs[run].position),
              rows.begin() + static_cast<std::ptrdiff_t>(end), runs[run].row);
  }
  list.numbers_ = std::make_shared<const std::vector<std::int64_t>>(std::move(rows));
  return list;
}

}  // namespace treadle
