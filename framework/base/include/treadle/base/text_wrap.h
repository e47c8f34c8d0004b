#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace treadle {

/// Columns that UTF-8 text takes: code points, which is right for everything Treadle itself prints.
std::size_t display_columns(std::string_view text);

/// The text in lines of at most `columns`, broken between words. A longer word has a line of its
/// own and is not broken.
std::vector<std::string> wrapped_lines(std::string_view text, std::size_t columns);

/// `left`, padded to `left_columns`, then `text` wrapped beside it; further lines are indented as
/// far. Where too little room is left beside it, the text stands below, indented by four. Each line
/// ends with a line feed.
std::string hanging_text(std::string_view left, std::size_t left_columns, std::string_view text,
                         std::size_t columns);

}  // namespace treadle
