#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "terminal/terminal.h"

/// Tables and paragraphs for people, and fields of CSV for programs.
namespace treadle::cli {

using Cells = std::vector<std::string>;

/// A table in as many pieces as the terminal's width makes necessary; each begins with the first
/// column. The first `left_columns` are aligned to the left, numbers to the right.
std::string table_text(const Cells& head, const std::vector<Cells>& rows, std::size_t left_columns,
                       const Terminal& terminal);

/// Columns of the terminal that a table takes in one piece.
std::size_t table_width(const Cells& head, const std::vector<Cells>& rows);

/// A paragraph in complete lines, wrapped to the terminal's width.
std::string paragraph(std::string_view text, const Terminal& terminal);

/// A result: numbers as number_text() has them, a dash for null.
std::string value_text(const nlohmann::json& value);

/// A setting as it was written: 0.001 rather than 1.0e-03. Of numbers that nobody has written, as
/// those that a search draws, six digits.
std::string setting_text(const nlohmann::json& value);

/// A value with every digit; nothing for null.
std::string csv_value(const nlohmann::json& value);

}  // namespace treadle::cli
