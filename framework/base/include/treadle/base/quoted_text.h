#pragma once

#include <string>
#include <string_view>

namespace treadle {

/// A quoted string of Graphviz's language: quotes and backslashes are escaped, line breaks become
/// \n. Needed by whatever writes DOT.
std::string dot_quoted(std::string_view text);

/// A field of a CSV file: in quotes where RFC 4180 asks for them.
std::string csv_field(std::string_view text);

}  // namespace treadle
