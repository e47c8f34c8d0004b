#pragma once

#include <initializer_list>
#include <limits>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

/// The vocabulary of a report: blocks, and the values in them. They are data; the scripts in page/
/// give them their form, decimals, units and dashes.
///
/// A block is an object whose "block" is its kind:
///
/// | kind | members |
/// |---|---|
/// | card | title, blocks, folded |
/// | group | blocks: cards beside each other |
/// | tiles | tiles: label, value, detail |
/// | facts | rows: label, value |
/// | table | columns, rows, shown: how many rows are not folded, noun |
/// | note, code | text |
/// | list | items |
/// | numbers, confusion | a table of the result: row_labels, column_labels, values |
/// | stretches | plan: the folds of the result in time |
/// | picture | svg, label |
/// | gallery | pictures: picture (a data URI), label, is_wrong |
/// | effects | rows: label, value, deviation, drawn as bars; shown |
/// | chart | chart: its kind, and its data |
/// | fits, epochs | switches and a table for "epochs" of the document |
/// | search | charts and tables for "search" of the document |
/// | adaptation, data, device, environment, structure | record: of the result, as it is |
///
/// A column is its name, or an object: name, as, left.
///
/// A value is text, a number, null where it is unknown, a list of values that are written one after
/// the other, or an object with one of these keys: "count", "seconds", "bytes", "share", "shape"
/// (the extents of a tensor), "setting" (a value of a workflow document), "path" (may be broken
/// behind its dots), "code", "soft" (a remark), "mean" with "deviation", "unknown" (why).
namespace treadle::report {

using Json = nlohmann::json;
using List = std::vector<Json>;

/// A value of one of the kinds above: as("count", 12345).
Json as(std::string_view kind, Json value);

/// Null when every block is null: a section without content has no title either.
Json card(Json title, List blocks, bool is_folded = false);
Json group(List cards);
Json note(Json text);
/// Null without rows. Rows whose value is null are left out.
Json facts(List rows);
/// A row of facts for each of these members of a record that it has.
struct Fact {
  const char* label;
  const char* key;
  const char* kind;
};
List facts_in(const Json& record, std::initializer_list<Fact> wanted);
/// Null without rows. The first cell of a row is its head. Rows beyond `shown` are folded, and
/// called "3 more trials".
Json table(List columns, List rows, std::size_t shown = std::numeric_limits<std::size_t>::max(),
           std::string_view noun = {});
/// A record of the result, for a kind that lays it out; null for anything but an object.
Json record(std::string_view kind, Json record);
/// A chart of a kind; `data` has what the script of that kind reads.
Json chart(std::string_view kind, Json data = Json::object());

/// Appends values to a sentence or blocks to a list.
void append(List& list, const List& more);

}  // namespace treadle::report
