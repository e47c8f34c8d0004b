#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <treadle/base/system/patience.h>

/// What the storages have in common: JSON as text, and the errors.
namespace treadle::storages {

/// Of the tables, and of a journal. Grows when an earlier version of this plugin would misread
/// them.
inline constexpr std::int64_t kSchemaVersion = 1;

/// JSON in ASCII on one line, which any file and any encoding of a database keeps. Bytes that are
/// no UTF-8 are replaced.
std::string stored(const nlohmann::json& value);
/// Throws StorageError, for `place`, where the text is no JSON, or nested more deeply than any
/// study's.
nlohmann::json read_stored(std::string_view text, const std::string& place);
/// Throws StorageError, for `place`, where a row lacks what every row of ours has.
std::string given(std::optional<std::string> text, const std::string& place);

[[noreturn]] void refuse_version(const std::string& place, std::int64_t got);
[[noreturn]] void refuse_locked(const std::string& place, Patience::Duration waited);
/// For a file that does not begin as a journal does.
[[noreturn]] void refuse_foreign(const std::string& place, const std::string& first_line);
/// For a file that was deleted, cut or replaced since it was opened: nobody would see what is
/// written into it.
[[noreturn]] void refuse_replaced(const std::string& place);
[[noreturn]] void refuse_study(const std::string& place, const std::string& study);

}  // namespace treadle::storages
