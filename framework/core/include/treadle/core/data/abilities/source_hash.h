#pragma once

#include <string>
#include <string_view>

namespace treadle {

/// Which rows data has, whatever is taken of them: equal for one file that is read with other
/// columns, as another task or in another precision, and different where other rows are left out.
/// DataProvider::content_hash() is about the numbers that were read.
///
/// An optional ability of a DataProvider (`provider.ask<SourceHash>()`), after open().
class SourceHash {
 public:
  static constexpr std::string_view kInterface = "treadle.source-hash/0";

  virtual ~SourceHash();

  /// 32 hex digits. Reads the file.
  std::string source_hash() const { return do_source_hash(); }

 private:
  virtual std::string do_source_hash() const = 0;
};

}  // namespace treadle
