#include <treadle/core/data/row_list.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>

#include <treadle/base/error.h>
#include <treadle/base/random.h>
#include <treadle/core/validation/set_aside.h>

namespace treadle {
namespace {

using ::testing::ElementsAre;
using Rows = std::vector<std::int64_t>;

/// Ranges and single rows in any order, rows of ranges above 0; some lists all of one kind.
Rows random_rows(RandomBits& bits) {
  Rows rows;
  const std::uint64_t kind = bits.below(3);  // ranges, single rows, both
  for (std::uint64_t piece = bits.below(12); piece > 0; --piece) {
    const auto first = static_cast<std::int64_t>(bits.below(200));
    const bool is_range = kind == 0 || (kind == 2 && bits.below(2) == 0);
    const auto length = static_cast<std::int64_t>(is_range ? 1 + bits.below(40) : 1);
    for (std::int64_t row = first; row < first + length; ++row)
      rows.push_back(row);
  }
  return rows;
}

/// A random permutation of the rows below a random count: no row twice.
Rows random_selection(RandomBits& bits) {
  Rows rows(bits.below(120));
  std::iota(rows.begin(), rows.end(), 0);
  if (bits.below(2) == 0)
    bits.shuffle(rows);
  rows.resize(rows.size() - bits.below(rows.size() + 1));
  return rows;
}

std::vector<RowRange> ranges_of(const RowList& list) {
  std::vector<RowRange> ranges;
  list.for_each_range([&](const RowRange& range) { ranges.push_back(range); });
  return ranges;
}

/// Row by row.
std::vector<RowRange> ranges_of(const Rows& rows) {
  std::vector<RowRange> ranges;
  for (const std::int64_t row : rows) {
    if (ranges.empty() || ranges.back().end != row)
      ranges.push_back({row, row});
    ++ranges.back().end;
  }
  return ranges;
}

TEST(RowList, IsWhatAPlainVectorIs) {
  RandomBits bits(7);
  for (int round = 0; round < 2000; ++round) {
    SCOPED_TRACE(round);
    const Rows rows = random_rows(bits);
    const RowList list(rows);

    ASSERT_EQ(list.size(), rows.size());
    EXPECT_EQ(list.empty(), rows.empty());
    EXPECT_EQ(list.numbers(), rows);
    EXPECT_EQ(Rows(list.begin(), list.end()), rows);
    EXPECT_EQ(ranges_of(list), ranges_of(rows));
    EXPECT_EQ(list.is_ascending(),
              std::adjacent_find(rows.begin(), rows.end(), std::greater_equal<>()) == rows.end());
    Rows backwards;
    for (auto at = list.end(); at != list.begin();)
      backwards.push_back(*--at);
    EXPECT_EQ(backwards, Rows(rows.rbegin(), rows.rend()));
    if (rows.empty())
      continue;
    EXPECT_EQ(list.front(), rows.front());
    EXPECT_EQ(list.back(), rows.back());
    const std::size_t begin = bits.below(rows.size());
    const std::size_t count = bits.below(rows.size() - begin + 1);
    const Rows some(rows.begin() + static_cast<std::ptrdiff_t>(begin),
                    rows.begin() + static_cast<std::ptrdiff_t>(begin + count));
    EXPECT_EQ(list[begin], rows[begin]);
    EXPECT_EQ(list.begin()[static_cast<std::ptrdiff_t>(begin)], rows[begin]);
    EXPECT_EQ(*(list.end() - static_cast<std::ptrdiff_t>(rows.size() - begin)), rows[begin]);
    EXPECT_EQ(list.part(begin, count).numbers(), some);
    EXPECT_EQ(list.part(begin, count), RowList(some));
    Rows copied(count);
    list.copy(begin, copied);
    EXPECT_EQ(copied, some);
  }
}

TEST(RowList, ListsOfTheSameRowsAreEqualHoweverTheyWereMade) {
  RandomBits bits(8);
  for (int round = 0; round < 1000; ++round) {
    SCOPED_TRACE(round);
    const Rows rows = random_rows(bits);
    const std::size_t cut = bits.below(rows.size() + 1);
    RowList::Builder one_by_one;
    for (const std::int64_t row : rows)
      one_by_one.add(row);
    RowList::Builder in_two;
    in_two.add(RowList(rows).part(0, cut));
    in_two.add(RowList(rows).part(cut, rows.size() - cut));
    RowList::Builder by_ranges;
    for (const RowRange& range : ranges_of(rows))
      by_ranges.add(range);

    EXPECT_EQ(one_by_one.done(), RowList(rows));
    EXPECT_EQ(in_two.done(), RowList(rows));
    EXPECT_EQ(by_ranges.done(), RowList(rows));
    EXPECT_TRUE(one_by_one.empty());
    if (!rows.empty()) {
      Rows other = rows;
      ++other[bits.below(other.size())];
      EXPECT_FALSE(RowList(other) == RowList(rows));
    }
  }
}

TEST(RowList, SelectionsAreThoseOfPlainVectors) {
  RandomBits bits(9);
  for (int round = 0; round < 1000; ++round) {
    SCOPED_TRACE(round);
    const Rows rows = random_selection(bits);
    Rows positions(rows.size());
    std::iota(positions.begin(), positions.end(), 0);
    if (bits.below(2) == 0)
      bits.shuffle(positions);
    positions.resize(rows.size() - bits.below(rows.size() + 1));
    Rows chosen;
    for (const std::int64_t position : positions)
      chosen.push_back(rows[static_cast<std::size_t>(position)]);
    Rows rest;
    for (std::int64_t row = 0; row < 120; ++row) {
      if (std::find(rows.begin(), rows.end(), row) == rows.end())
        rest.push_back(row);
    }
    Rows all(120);
    std::iota(all.begin(), all.end(), 0);

    EXPECT_EQ(RowList(rows).at(positions).numbers(), chosen);
    EXPECT_EQ(all_rows_but(120, rows).numbers(), rest);
    EXPECT_EQ(rows_of_both(rows, rest).numbers(), all);
  }
}

TEST(RowList, ARangeTakesNoMemoryForItsRows) {
  const RowList huge = RowList::range(5, std::int64_t{1} << 60);

  EXPECT_EQ(huge.size(), (std::size_t{1} << 60) - 5);
  EXPECT_EQ(huge[1000], 1005);
  EXPECT_EQ(huge.back(), (std::int64_t{1} << 60) - 1);
  EXPECT_EQ(huge.part(1 << 20, std::size_t{1} << 59).front(), (1 << 20) + 5);
  EXPECT_TRUE(huge.is_ascending());
  EXPECT_EQ(all_rows_but(std::int64_t{1} << 60, huge), RowList({0, 1, 2, 3, 4}));
  EXPECT_TRUE(RowList::range(3, 3).empty());
}

TEST(RowList, ACopyStaysWhatItWas) {
  RowList list{3, 4, 5, 9};
  const RowList copy = list;
  list = RowList::range(0, 2);

  EXPECT_THAT(copy, ElementsAre(3, 4, 5, 9));
  EXPECT_THAT(list, ElementsAre(0, 1));
}

}  // namespace
}  // namespace treadle
