#pragma once

#include <string>
#include <string_view>

namespace treadle::csv {

/// How numbers are written: "1.234,56" has the decimal "," and the thousands ".".
struct NumberNotation {
  std::string decimal = ".";
  std::string thousands;  ///< empty: none

  bool is_plain() const { return decimal == "." && thousands.empty(); }

  /// Writes a number as Treadle reads it, "1234.56", behind the text in `plain`. False where the
  /// text is no number in this notation: groups of thousands have three digits, but for the first,
  /// and a number without any is one, too.
  bool append_plain(std::string_view text, std::string& plain) const;
};

/// The notation of "1.234,56", if most of the texts that have a comma are numbers with it, and none
/// has a decimal point; else the plain one.
class NotationGuess {
 public:
  void add(std::string_view text);
  NumberNotation guess() const;

 private:
  std::size_t commas_ = 0;     ///< numbers as 3,5 or 1.234,56
  std::size_t thousands_ = 0;  ///< of them those with points
  std::size_t others_ = 0;     ///< numbers as 3.5 or 1,234.5, which speak against it
};

}  // namespace treadle::csv
