#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace treadle::tokenizers {

/// A regular expression over UTF-8, with Unicode's classes of characters. Const functions may run
/// in several threads at once.
class Pattern {
 public:
  explicit Pattern(const std::string& expression);
  ~Pattern();
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  /// Calls `each` for every match from left to right, as a view into `text`. Expects UTF-8.
  template <typename Each>
  void for_each(std::string_view text, Each&& each) const {
    const Matching matching(*this, text);
    for (std::string_view match; matching.next(match);)
      each(match);
  }

 private:
  /// One walk through a text.
  class Matching {
   public:
    Matching(const Pattern& pattern, std::string_view text);
    ~Matching();
    Matching(const Matching&) = delete;
    Matching& operator=(const Matching&) = delete;
    bool next(std::string_view& match) const;

   private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
  };

  struct Code;
  std::unique_ptr<Code> code_;
};

/// `text` with each upper-case letter replaced by its lower-case one, where that is a single code
/// point. Expects UTF-8.
std::string in_lower_case(std::string_view text);

}  // namespace treadle::tokenizers
