#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace treadle::tokenizers {

/// How GPT-2's files write bytes: each as a printable character. `!` to `~`, `¡` to `¬` and `®` to
/// `ÿ` stand for the bytes of their code points, U+0100 and those after it for the other bytes in
/// ascending order.
std::string letters_of(std::string_view bytes);

/// The bytes that these letters stand for. Throws a DataError that begins with `where` for a
/// character that is not such a letter.
std::string bytes_of_letters(std::string_view letters, const std::string& where);

}  // namespace treadle::tokenizers
