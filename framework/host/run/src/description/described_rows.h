#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <treadle/host/describe/described_table.h>

namespace treadle::internal {

class DocumentComponents;

/// The data of a document as columns, without what the file has beside inputs and targets.
struct DescribedRows {
  describe::DescribedTable table;
  std::vector<std::int64_t> rows;  ///< of the data, ascending: those of the table
};

/// At most `most_rows`, a uniform sample drawn with describe::kDescriptionSeed, and at most
/// kMostDescribedValues of them. Ports and targets that are no columns are noted. The table's parts
/// are those of the first fold; of samples, the rows that they touch, where rows of both parts
/// train. Expects a plan.
DescribedRows described_rows(const DocumentComponents& components, std::int64_t most_rows);

/// Numbers of inputs that are read: 80 MB as float64.
inline constexpr std::int64_t kMostDescribedValues = 10'000'000;

/// Suspected leaks as sentences, found in at most kMostRowsForNotes rows; none are looked for in
/// more than kMostColumnsForNotes columns. Expects a plan.
std::vector<std::string> notes_on_leaks(const DocumentComponents& components);

// Together less than a second.
inline constexpr std::int64_t kMostRowsForNotes = 10'000;
inline constexpr std::int64_t kMostColumnsForNotes = 200;

}  // namespace treadle::internal
