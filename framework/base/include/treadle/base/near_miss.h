#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace treadle {

/// The number of insertions, deletions, replacements and swaps of neighbours that turn one word
/// into the other, where no part is edited twice (optimal string alignment; Damerau 1964). Bytes
/// count; upper and lower case are the same letter, and so are dash and underscore.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidates that `word` may have been meant to be, best first: at most three, each no further
/// away than max(1, length / 3) edits and at most one edit further than the best. Where there are
/// none: those that `word` is short for, as "sep" is for "separator" and "lr" for "learning_rate".
std::vector<std::string> near_misses(std::string_view word,
                                     std::span<const std::string> candidates);

/// The names to choose from, for the sentence before did_you_mean(): `a, b, c`, without control
/// characters, cut after twenty: `a, …, t and 5 more`; `none` where there is none.
std::string name_list(std::span<const std::string> names);

/// `; did you mean "a", "b" or "c"?`, or nothing when nothing is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace treadle
