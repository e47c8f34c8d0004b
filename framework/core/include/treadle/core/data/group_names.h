#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace treadle {

/// The names of groups, such as the series of a table, by their numbers in RowReader::groups().
///
/// An optional ability of a DataProvider (`provider.ask<GroupNames>()`), after open(). Without it a
/// group's name is its number. Const functions are thread-safe.
class GroupNames {
 public:
  static constexpr std::string_view kInterface = "treadle.group-names/0";

  virtual ~GroupNames();

  /// Expects a number that RowReader::groups() has.
  std::string name_of(std::int64_t group) const { return do_name_of(group); }

 private:
  virtual std::string do_name_of(std::int64_t group) const = 0;
};

}  // namespace treadle
