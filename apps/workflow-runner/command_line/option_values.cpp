#include "command_line/option_values.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace treadle::cli {
namespace {

/// The names in a line of CSV: `id,"size, in m"` are two, the second with a comma in it.
/// `example` is that of an option whose names are quoted.
void add_column_names(std::string_view line, const std::string& example,
                      std::vector<std::string>& names) {
  for (std::size_t at = 0; at <= line.size(); ++at) {
    std::string name;
    if (at < line.size() && line[at] == '"') {
      for (++at; at < line.size() && (line[at] != '"' || line.substr(at + 1).starts_with('"'));
           ++at) {
        name += line[at];
        at += line[at] == '"' ? 1 : 0;
      }
      if (at == line.size() || (at + 1 < line.size() && line[at + 1] != ',')) {
        throw UsageError(example.substr(0, example.find(' ') + 1) + quote_text(line) +
                         ": expected a closing quote at the end of a name; a name with a comma is "
                         "quoted as in CSV: " +
                         example);
      }
      ++at;
    } else {
      const std::size_t end = std::min(line.find(',', at), line.size());
      name = line.substr(at, end - at);
      at = end;
    }
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
}

}  // namespace

std::vector<std::string> column_names(const CommandLine& line, const std::string& option,
                                      const std::string& example) {
  std::vector<std::string> names;
  for (const std::string& list : line.texts(option))
    add_column_names(list, "--" + option + " '" + example + "'", names);
  return names;
}

std::string device_for_use(const CommandLine& line) {
  return line.has("device") ? line.text("device") : "auto";
}

}  // namespace treadle::cli
