#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <span>
#include <vector>

namespace treadle {

/// Consecutive rows [begin, end).
struct RowRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  bool operator==(const RowRange&) const = default;
};

/// The numbers of some rows, in an order: those that train, those that validate.
///
/// Rows that follow one another are kept as ranges, so that the halves of a split in time cost
/// nothing, however long they are; a shuffled list is kept as its numbers. The list decides which,
/// by its content alone. A value: copies share what they hold, and nobody changes it, so any
/// thread may read it. Access by position costs O(log ranges).
class RowList {
 public:
  class Iterator;
  class Builder;
  using value_type = std::int64_t;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = std::int64_t;
  using const_reference = std::int64_t;
  using iterator = Iterator;
  using const_iterator = Iterator;

  RowList() = default;
  // A list of numbers is a list of rows.
  RowList(std::vector<std::int64_t> rows);  // NOLINT(google-explicit-constructor)
  RowList(std::initializer_list<std::int64_t> rows) : RowList(std::vector<std::int64_t>(rows)) {}
  /// The rows begin, begin + 1, …, end - 1.
  static RowList range(std::int64_t begin, std::int64_t end);

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// Expects a position within the list.
  std::int64_t operator[](std::size_t position) const {
    if (numbers_ != nullptr)
      return (*numbers_)[position];
    const Run& run = (*runs_)[runs_->size() == 1 ? 0 : run_at(position)];
    return run.row + static_cast<std::int64_t>(position - run.position);
  }
  std::int64_t front() const { return (*this)[0]; }
  std::int64_t back() const { return (*this)[size_ - 1]; }
  Iterator begin() const;
  Iterator end() const;

  /// Fills `rows` with those from position `begin` on.
  void copy(std::size_t begin, std::span<std::int64_t> rows) const;
  /// `count` of them from position `begin` on.
  RowList part(std::size_t begin, std::size_t count) const;
  /// Those at the given positions.
  RowList at(const RowList& positions) const;
  std::vector<std::int64_t> numbers() const;
  /// Whether each is larger than the one before it.
  bool is_ascending() const;

  /// Calls `use(RowRange)` with the rows in their order, each range as long as can be.
  template <typename Use>
  void for_each_range(Use&& use) const {
    for_each_range_in(0, size_, use);
  }
  template <typename Use>
  void for_each_range_in(std::size_t begin, std::size_t end, Use&& use) const;

  friend bool operator==(const RowList& a, const RowList& b);

 private:
  /// Rows row, row + 1, … from `position` of the list up to where the next run begins.
  struct Run {
    std::int64_t row;
    std::size_t position;
    bool operator==(const Run&) const = default;
  };

  std::size_t run_at(std::size_t position) const;
  std::size_t end_of(std::size_t run) const {
    return run + 1 < runs_->size() ? (*runs_)[run + 1].position : size_;
  }

  std::size_t size_ = 0;
  // One of them; neither, where the list is empty.
  std::shared_ptr<const std::vector<Run>> runs_;
  std::shared_ptr<const std::vector<std::int64_t>> numbers_;
};

/// Puts a list together, row by row or range by range.
class RowList::Builder {
 public:
  void add(std::int64_t row) { add(RowRange{row, row + 1}); }
  void add(const RowRange& rows);
  void add(const RowList& rows);
  bool empty() const { return size_ == 0; }
  RowList done();

 private:
  std::vector<Run> runs_;
  std::size_t size_ = 0;
  std::int64_t next_ = 0;  // the row that would go on the last run
};

class RowList::Iterator {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = std::int64_t;
  using difference_type = std::ptrdiff_t;
  using pointer = const std::int64_t*;
  using reference = std::int64_t;

  Iterator() = default;
  Iterator(const RowList& list, std::size_t position) : list_(&list), position_(position) {
    find_run();
  }

  std::int64_t operator*() const {
    if (list_->numbers_ != nullptr)
      return (*list_->numbers_)[position_];
    const Run& run = (*list_->runs_)[run_];
    return run.row + static_cast<std::int64_t>(position_ - run.position);
  }
  std::int64_t operator[](difference_type n) const { return *(*this + n); }

  Iterator& operator++() {
    ++position_;
    if (list_->runs_ != nullptr && position_ == list_->end_of(run_) && position_ < list_->size_)
      ++run_;
    return *this;
  }
  Iterator& operator--() {
    --position_;
    if (list_->runs_ != nullptr && position_ < (*list_->runs_)[run_].position)
      --run_;
    return *this;
  }
  Iterator operator++(int) {
    Iterator before = *this;
    ++*this;
    return before;
  }
  Iterator operator--(int) {
    Iterator before = *this;
    --*this;
    return before;
  }
  Iterator& operator+=(difference_type n) {
    position_ = static_cast<std::size_t>(static_cast<difference_type>(position_) + n);
    find_run();
    return *this;
  }
  Iterator& operator-=(difference_type n) { return *this += -n; }

  friend Iterator operator+(Iterator a, difference_type n) { return a += n; }
  friend Iterator operator+(difference_type n, Iterator a) { return a += n; }
  friend Iterator operator-(Iterator a, difference_type n) { return a -= n; }
  friend difference_type operator-(const Iterator& a, const Iterator& b) {
    return static_cast<difference_type>(a.position_) - static_cast<difference_type>(b.position_);
  }
  friend bool operator==(const Iterator& a, const Iterator& b) {
    return a.position_ == b.position_;
  }
  friend auto operator<=>(const Iterator& a, const Iterator& b) {
    return a.position_ <=> b.position_;
  }

 private:
  // The last run at the end, from where one can only go back.
  void find_run() {
    if (list_->runs_ != nullptr)
      run_ = list_->run_at(position_ < list_->size_ ? position_ : list_->size_ - 1);
  }

  const RowList* list_ = nullptr;
  std::size_t position_ = 0;
  std::size_t run_ = 0;
};

inline RowList::Iterator RowList::begin() const {
  return {*this, 0};
}

inline RowList::Iterator RowList::end() const {
  return {*this, size_};
}

template <typename Use>
void RowList::for_each_range_in(std::size_t begin, std::size_t end, Use&& use) const {
  if (begin >= end)
    return;
  if (runs_ != nullptr) {
    for (std::size_t run = run_at(begin); begin < end; ++run) {
      const std::size_t stop = end < end_of(run) ? end : end_of(run);
      const std::int64_t first = (*this)[begin];
      use(RowRange{first, first + static_cast<std::int64_t>(stop - begin)});
      begin = stop;
    }
    return;
  }
  const std::vector<std::int64_t>& rows = *numbers_;
  for (std::size_t next = begin + 1; begin < end; ++next) {
    if (next < end && rows[next] == rows[next - 1] + 1)
      continue;
    use(RowRange{rows[begin], rows[next - 1] + 1});
    begin = next;
  }
}

}  // namespace treadle
