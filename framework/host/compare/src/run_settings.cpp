#include <treadle/host/compare/run_settings.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <set>
#include <string_view>

#include "json_member.h"

namespace treadle::compare {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kSearch = "search";
constexpr std::size_t kMostIndices = 1000;  // in a range of a space, as in SearchSpace

/// A list is one value.
void flatten(const Json& value, const std::string& path, Settings& settings) {
  if (!value.is_object()) {
    settings[path] = value;
    return;
  }
  for (const auto& [key, inner] : value.items())
    flatten(inner, path.empty() ? key : path + "." + key, settings);
}

std::vector<std::string> words_of(std::string_view path) {
  const char separator = path.starts_with('/') ? '/' : '.';
  if (separator == '/')
    path.remove_prefix(1);
  std::vector<std::string> words;
  for (;;) {
    const std::size_t end = path.find(separator);
    words.emplace_back(path.substr(0, end));
    if (end == std::string_view::npos)
      return words;
    path.remove_prefix(end + 1);
  }
}

std::size_t index_in(std::string_view text) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  return error == std::errc() && end == text.data() + text.size() ? index : std::string::npos;
}

/// The paths that a key of a space stands for: "cells.{0..2}" for three.
std::vector<std::string> paths_of(const std::string& key) {
  const std::size_t begin = key.find('{');
  const std::size_t dots = key.find("..", begin);
  const std::size_t end = key.find('}', dots);
  if (begin == std::string::npos || dots == std::string::npos || end == std::string::npos)
    return {key};
  const std::size_t first = index_in(std::string_view(key).substr(begin + 1, dots - begin - 1));
  const std::size_t last = index_in(std::string_view(key).substr(dots + 2, end - dots - 2));
  if (first > last || last - first >= kMostIndices || last == std::string::npos)
    return {key};
  std::vector<std::string> paths;
  for (std::size_t i = first; i <= last; ++i)
    paths.push_back(key.substr(0, begin) + std::to_string(i) + key.substr(end + 1));
  return paths;
}

/// Makes null of the value at a path, as far as there is one.
void blank(Json& document, const std::string& path) {
  Json* at = &document;
  for (const std::string& word : words_of(path)) {
    if (at->is_object() && at->contains(word)) {
      at = &(*at)[word];
    } else if (at->is_array() && index_in(word) < at->size()) {
      at = &(*at)[index_in(word)];
    } else {
      return;
    }
  }
  *at = Json();
}

enum class Blank { kReplacedByEveryTrial, kReplacedByAny };

void blank_searched(Json& document, Blank which) {
  const Json space = member(member(document, kSearch), "space");
  for (const auto& [key, dimension] : space.items()) {
    if (which == Blank::kReplacedByEveryTrial && !member(dimension, "when").is_null())
      continue;
    for (const std::string& path : paths_of(key))
      blank(document, path);
  }
}

Settings flattened(Json document) {
  for (const char* key : {"treadle", "name", "extensions", "$schema"})
    document.erase(key);
  Settings settings;
  flatten(document, "", settings);
  return settings;
}

bool is_of_search(const std::string& key) {
  return key.starts_with(std::string(kSearch) + ".");
}

/// The length of the list that all runs have at a key whose elements are components; else 0.
std::size_t length_of_lists(const std::vector<Settings>& all, const std::string& key) {
  std::size_t length = 0;
  bool has_components = false;
  for (const Settings& one : all) {
    const auto found = one.find(key);
    const bool is_list = found != one.end() && found->second.is_array() &&
                         (length == 0 || found->second.size() == length);
    if (!is_list)
      return 0;
    length = found->second.size();
    has_components =
        has_components || std::any_of(found->second.begin(), found->second.end(),
                                      [](const Json& element) { return element.is_object(); });
  }
  return has_components ? length : 0;
}

/// In place of lists their elements, also of lists within them.
void split_lists(std::vector<Settings>& all) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : all.front())
    keys.push_back(key);
  while (!keys.empty()) {
    const std::string key = std::move(keys.back());
    keys.pop_back();
    const std::size_t length = length_of_lists(all, key);
    if (length == 0)
      continue;
    for (Settings& one : all) {
      const Json list = one.extract(key).mapped();
      for (std::size_t i = 0; i < length; ++i)
        flatten(list[i], key + "." + std::to_string(i), one);
    }
    for (auto found = all.front().lower_bound(key + "."); found != all.front().end(); ++found) {
      if (!found->first.starts_with(key + "."))
        break;
      keys.push_back(found->first);
    }
  }
}

/// Next to runs without a search, all of it would differ.
void summarize_searches(std::vector<Settings>& all) {
  const auto has_search = [](const Settings& one) {
    const auto found = one.lower_bound(std::string(kSearch) + ".");
    return found != one.end() && is_of_search(found->first);
  };
  if (std::all_of(all.begin(), all.end(), has_search))
    return;
  const std::set<std::string> kept{"search.tuner.use", "search.objective", "search.trials"};
  for (Settings& one : all) {
    std::erase_if(one, [&](const auto& entry) {
      return is_of_search(entry.first) && !kept.contains(entry.first);
    });
  }
}

const Json& value_in(const Settings& settings, const std::string& key) {
  static const Json kNone;
  const auto found = settings.find(key);
  return found == settings.end() ? kNone : found->second;
}

}  // namespace

Settings settings_of(const RunRecord& run) {
  Json document = run.document;
  blank_searched(document, Blank::kReplacedByEveryTrial);
  return flattened(std::move(document));
}

Settings trained_settings_of(const RunRecord& run) {
  Json document = run.document;
  if (run.best.is_object()) {
    const Json search = member(document, kSearch);
    document = run.best;
    document[kSearch] = search;
  } else {
    blank_searched(document, Blank::kReplacedByAny);
  }
  return flattened(std::move(document));
}

DifferingSettings differing_settings(std::vector<Settings> all) {
  DifferingSettings differing;
  differing.values.resize(all.size());
  if (all.empty())
    return differing;
  summarize_searches(all);
  split_lists(all);
  std::set<std::string> keys;
  for (const Settings& one : all) {
    for (const auto& [key, value] : one)
      keys.insert(key);
  }
  for (const std::string& key : keys) {
    if (std::all_of(all.begin(), all.end(), [&](const Settings& one) {
          return value_in(one, key) == value_in(all.front(), key);
        }))
      continue;
    differing.keys.push_back(key);
    for (std::size_t i = 0; i < all.size(); ++i)
      differing.values[i].push_back(value_in(all[i], key));
  }
  return differing;
}

}  // namespace treadle::compare
