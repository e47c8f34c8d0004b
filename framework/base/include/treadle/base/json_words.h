#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

/// JSON in messages: quoting and naming of values, the same in all parts of Treadle.
namespace treadle {

/// The value as it may stand after "got": `"fast" (text)`, `-1`, `true`, `null`, `an array`,
/// `an object`. Long text is cut.
std::string describe_value(const nlohmann::json& value);

/// The value as it may stand in a list of choices: `"relu"`, `3`, `[1,2]`. Long values are cut.
std::string quote_value(const nlohmann::json& value);

/// Text in double quotes, with control characters escaped and bytes that are not UTF-8 replaced.
std::string quote_text(std::string_view text);

/// `"red", "green"`, cut after ten: `"red", …, "blue" and 3 more`. Empty for none.
std::string quoted_list(const std::vector<std::string>& words);

/// Text as it may stand in a message without quotes: control characters are escaped, so that
/// nothing a stranger wrote can do anything to a terminal, and bytes that are not UTF-8 replaced.
std::string plain_text(std::string_view text);

/// The JSON pointer (RFC 6901) of a member or an element of the value at `pointer`.
std::string child_pointer(std::string_view pointer, std::string_view key);
std::string child_pointer(std::string_view pointer, std::size_t index);

/// The pointer's last part, unescaped, and the pointer of the value it is a part of. Both are empty
/// for the whole document.
std::string last_key(std::string_view pointer);
std::string_view parent_pointer(std::string_view pointer);

}  // namespace treadle
