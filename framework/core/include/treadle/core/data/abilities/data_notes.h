#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace treadle {

/// Facts about opened data that a user may not expect, such as rows that were left out.
/// Runs, and `check --dry-run`, show each as a note.
///
/// An optional ability of a DataProvider (`provider.ask<DataNotes>()`), after open().
class DataNotes {
 public:
  static constexpr std::string_view kInterface = "treadle.data-notes/0";

  virtual ~DataNotes();

  /// A sentence each, without "data: " in front; empty: nothing to say.
  std::vector<std::string> notes() const { return do_notes(); }

 private:
  virtual std::vector<std::string> do_notes() const = 0;
};

}  // namespace treadle
