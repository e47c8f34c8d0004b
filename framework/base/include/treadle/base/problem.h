#pragma once

#include <string>
#include <vector>

#include <treadle/base/error.h>

namespace treadle {

/// Where a value stands in the text the user wrote. Line and column count from 1; line 0 means the
/// value was never written (a default, or a document built in code).
struct Place {
  std::string file;
  int line = 0;
  int column = 0;

  /// "my.json:14", "my.json" without a line, "" without a file.
  std::string text() const;
};

/// One mistake in a document: one sentence.
struct Problem {
  Place place;
  std::string pointer;  ///< JSON pointer of the value, "" for the whole document
  std::string message;  ///< expected, got, and what to do; without place and pointer
  /// The document is right: a plugin that offers what it names cannot be used.
  bool plugin_at_fault = false;

  /// "my.json:14: /optimizer/learning_rate: must be > 0, got -1": one line, without control
  /// characters.
  std::string text() const;
};

/// Every problem of one document at once; what() has one line per problem. Its kind is kPlugin when
/// a plugin is at fault for each of them: the document then needs no change.
class DocumentError : public Error {
 public:
  explicit DocumentError(std::vector<Problem> problems);
  ~DocumentError() override;

  const std::vector<Problem>& problems() const noexcept { return problems_; }

 private:
  std::vector<Problem> problems_;
};

}  // namespace treadle
