#pragma once

#include <string>
#include <string_view>

namespace treadle {

/// A quoted string of Graphviz's language: quotes and backslashes are escaped, line breaks become
/// \n. Needed by whatever writes DOT.
std::string dot_quoted(std::string_view text);

}  // namespace treadle
