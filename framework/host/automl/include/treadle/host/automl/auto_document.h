#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/host/automl/portfolio.h>
#include <treadle/host/automl/table_reading.h>

namespace treadle::automl {

struct DocumentOptions {
  std::string name = "auto";
  std::uint64_t seed = 0;
  std::optional<std::int64_t> trials = {};  ///< at most; absent: 50, or what the time is enough for
  std::string time = {};                    ///< "20m": the budget of the search; empty: none
  /// Of the portfolio; empty: all that suit the table and the time.
  std::vector<std::string> families = {};
  int workers = 1;  ///< cores that the time is for
};

/// The workflow document that searches for a model of a table, trains it and reports: what `auto`
/// runs, and what does it again. Complete but for values that every document may leave out.
///
/// `data` is the document's data as far as it is known: its component, the file and how it is
/// written. The document adds what the columns are, and the rest: transforms fitted on training
/// rows, validation by five folds or held-out rows, a search over the portfolio.
nlohmann::json auto_document(const TableReading& table, nlohmann::json data,
                             const Portfolio& portfolio, const DocumentOptions& options);

/// Families that suit a table, of which a trial takes too much of the time: those that a document
/// without names of families leaves out. Names, in the order of the portfolio.
std::vector<std::string> slow_families(const TableReading& table, const Portfolio& portfolio,
                                       const DocumentOptions& options);

/// So many rows and more are validated by rows that are held out, fewer by five folds. Of two
/// classes each needs half as many; but of more than kMostFoldedRows, folds take too long.
inline constexpr std::int64_t kManyRows = 3000;
inline constexpr std::int64_t kMostFoldedRows = 50'000;

}  // namespace treadle::automl
