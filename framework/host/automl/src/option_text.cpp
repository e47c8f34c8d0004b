#include "option_text.h"

#include <algorithm>

#include <treadle/base/json_words.h>

namespace treadle::automl {
namespace {

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

}  // namespace

std::string option_text(std::string_view option, std::string_view column, std::string_view type) {
  const std::string start = "--" + std::string(option) + " ";
  const std::string end = type.empty() ? "" : "=" + std::string(type);
  if (!column.starts_with('-') && std::all_of(column.begin(), column.end(), is_plain))
    return start + std::string(column) + end;
  std::string quoted;
  for (const char c : plain_text(column))
    quoted += c == '"' ? "\"\"" : c == '\'' ? "'\\''" : std::string(1, c);
  return start + "'\"" + quoted + end + "\"'";
}

}  // namespace treadle::automl
