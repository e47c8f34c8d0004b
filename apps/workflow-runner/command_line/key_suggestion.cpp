#include "command_line/key_suggestion.h"

#include <algorithm>
#include <map>
#include <vector>

#include <treadle/base/document.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

namespace treadle::cli {
namespace {

using Json = nlohmann::json;

/// Key -> the paths at which a document has it, as --set takes them.
using Paths = std::multimap<std::string, std::string>;

void collect(const Json& value, const std::string& path, Paths& paths) {
  if (!value.is_object())
    return;
  for (const auto& [key, member] : value.items()) {
    const std::string here = path.empty() ? key : path + "." + key;
    paths.emplace(key, here);
    collect(member, here, paths);
  }
}

Paths paths_in_documents(std::span<const std::string> words) {
  Paths paths;
  for (const std::string& word : words) {
    if (word.starts_with("-"))
      continue;
    try {
      collect(Document::read(word)->value(), "", paths);
    } catch (const DocumentError&) {
      // Another word: its complaint is not what was asked for.
    }
  }
  return paths;
}

/// What was typed after the option.
std::string value_of(std::string_view option, std::span<const std::string> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == option && i + 1 < words.size() && !words[i + 1].starts_with("-"))
      return words[i + 1];
    if (words[i].starts_with(std::string(option) + "="))
      return words[i].substr(option.size() + 1);
  }
  return "…";
}

}  // namespace

std::string key_suggestion(std::string_view option, std::span<const std::string> words) {
  const Paths paths = paths_in_documents(words);
  std::vector<std::string> keys;
  for (const auto& [key, path] : paths)
    keys.push_back(key);
  std::string name(option.substr(std::min(option.find_first_not_of('-'), option.size())));
  name = name.substr(0, name.find('='));
  const std::vector<std::string> near = near_misses(name, keys);
  if (near.empty())
    return {};
  const std::string path = paths.find(near.front())->second;
  return "; did you mean " + quote_text("--set " + path + "=" + value_of(option, words)) + "?";
}

}  // namespace treadle::cli
