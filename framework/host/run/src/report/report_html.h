#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

/// The small vocabulary a report is written in. Everything here returns text that may stand in
/// HTML.
namespace treadle::html {

/// The text with the five characters replaced that mean something in HTML, and bytes that are not
/// UTF-8 replaced by U+FFFD.
std::string escape(std::string_view text);

/// JSON as it may stand inside <script>: no "<", so neither "</script" nor "<!--" can occur.
std::string script_json(const nlohmann::json& value);

/// Four decimals for everyday sizes, an exponent beyond; a dash for null, NaN and infinity, which
/// JSON cannot tell apart.
std::string number(const nlohmann::json& value);
/// A count that may have become a fraction through weights.
std::string amount(double value);
/// A stored fact of any kind, for a table.
std::string fact(const nlohmann::json& value);
/// "12 345 678", grouped with narrow no-break spaces; a dash for anything but an integer.
std::string count(const nlohmann::json& value);
/// "0.84 s", "12.3 s", "4 min 05 s", "2 h 07 min"; a dash for anything but a number.
std::string seconds(const nlohmann::json& value);

/// "640 bytes", "12.2 MiB"; a dash for anything but a number.
std::string bytes(const nlohmann::json& value);
/// "12.5 %" of 0.125; a dash for anything but a number.
std::string share(const nlohmann::json& value);

/// One column per head; every cell is HTML already. `classes` is the table's class attribute.
std::string table(std::string_view classes, const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows);

/// A card with a title; nothing when `content` is empty.
std::string card(std::string_view title, std::string_view content);
/// The same, folded up until it is clicked.
std::string folded_card(std::string_view title, std::string_view content);

/// `"<div class=\"scroll\">" content "</div>"`: wide things scroll alone, not the page.
std::string scrolling(std::string_view content, bool tall = false);

/// Cards beside each other where there is room.
std::string side_by_side(std::string_view cards);

/// A choice for the script: the values are the places in `options`, from 0.
std::string picker(std::string_view id, std::string_view label,
                   const std::vector<std::string>& options);

/// A card with a canvas for the script to draw in, and what stands there without scripts.
std::string chart_card(std::string_view title, std::string_view canvas, std::string_view controls,
                       std::string_view no_script);

}  // namespace treadle::html
