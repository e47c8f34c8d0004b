#include "list_file.h"

#include <algorithm>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/files/csv_records.h>
#include <treadle/base/json_words.h>
#include <treadle/base/utf8.h>

namespace treadle::images {

ListFile read_list(std::string_view text, const std::string& shown) {
  if (const auto bad = first_bad_utf8(text)) {
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(*bad), '\n');
    throw DataError(shown + ":" + std::to_string(line) + ": is not UTF-8");
  }
  CsvRecords records(text, shown);
  ListFile list;
  if (!records.next(list.names))
    throw DataError(shown + ": is empty; expected a line with the names of the columns");
  for (auto name = list.names.begin(); name != list.names.end(); ++name) {
    if (std::find(list.names.begin(), name, *name) != name)
      throw DataError(shown + ": has two columns called " + quote_text(*name));
  }
  list.fields.resize(list.names.size());
  std::vector<std::string> fields;
  while (records.next(fields)) {
    if (fields.size() != list.names.size()) {
      throw DataError(shown + ":" + std::to_string(records.line()) + ": expected " +
                      std::to_string(list.names.size()) + " fields, as in the header, got " +
                      std::to_string(fields.size()));
    }
    for (std::size_t i = 0; i < fields.size(); ++i)
      list.fields[i].push_back(std::move(fields[i]));
    list.lines.push_back(records.line());
  }
  return list;
}

}  // namespace treadle::images
