#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace treadle {

/// The columns of a data file as texts, also those that no input uses: identifiers and dates that
/// are written beside predictions.
///
/// An optional ability of a DataProvider (`provider.ask<SourceColumns>()`), after open(): an object
/// beside it, as RowReader is.
class SourceColumns {
 public:
  static constexpr std::string_view kInterface = "treadle.source-columns/0";

  virtual ~SourceColumns();

  /// A list of texts for each of `names`, one text per row of the provider's RowReader, in its
  /// order. Throws DataError for a name that is no column of the file.
  std::vector<std::vector<std::string>> texts(const std::vector<std::string>& names) const {
    return do_texts(names);
  }

 private:
  virtual std::vector<std::vector<std::string>> do_texts(
      const std::vector<std::string>& names) const = 0;
};

}  // namespace treadle
