#include "bpe_files.h"

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "byte_letters.h"
#include "text_table.h"

namespace treadle::tokenizers {
namespace {

using nlohmann::json;

constexpr std::string_view kEndOfText = "<|endoftext|>";

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path))
    throw DataError(path.string() + ": cannot be opened");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad())
    throw DataError(path.string() + ": cannot be read");
  return text;
}

json read_json(const std::filesystem::path& path) {
  const std::string text = contents(path);
  try {
    json value = json::parse(text);
    if (value.is_object() && !value.empty())
      return value;
  } catch (const json::exception& error) {
    throw DataError(path.string() + ": is not JSON: " + plain_text(error.what()));
  }
  throw DataError(path.string() + ": expected an object of tokens and their numbers, as in " +
                  R"({"!": 0, "\"": 1, …})");
}

std::string byte_in_words(std::size_t byte) {
  std::array<char, 8> hex{};
  std::snprintf(hex.data(), hex.size(), "0x%02zX", byte);
  return hex.data();
}

/// The keys of vocab.json by number.
std::vector<std::string> keys_by_number(const json& numbers, const std::string& file) {
  std::vector<std::string> keys(numbers.size());
  std::vector<bool> is_taken(numbers.size());
  for (const auto& [key, value] : numbers.items()) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= keys.size()) {
      throw DataError(file + ": " + quote_text(key) + " has " + describe_value(value) + "; its " +
                      std::to_string(keys.size()) + " tokens must have the numbers from 0 to " +
                      std::to_string(keys.size() - 1) + " without gaps");
    }
    const auto number = value.get<std::size_t>();
    if (is_taken[number]) {
      throw DataError(file + ": " + quote_text(keys[number]) + " and " + quote_text(key) +
                      " have the same number, " + std::to_string(number));
    }
    is_taken[number] = true;
    keys[number] = key;
  }
  return keys;
}

}  // namespace

BpeVocabulary read_bpe_files(const std::filesystem::path& vocabulary,
                             const std::filesystem::path& merges) {
  const std::string file = vocabulary.string();
  BpeVocabulary read;
  for (const std::string& key : keys_by_number(read_json(vocabulary), file)) {
    if (key == kEndOfText) {
      read.end_of_text = static_cast<std::int64_t>(read.tokens.size());
      read.tokens.emplace_back();
      continue;
    }
    if (key.empty())
      throw DataError(file + ": a token is empty");
    read.tokens.push_back(bytes_of_letters(key, file));
  }
  const TextTable table(read.tokens);
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    if (!table.find(text)) {
      throw DataError(file + ": the byte " + byte_in_words(byte) + " has no token; expected " +
                      quote_text(letters_of(text)) + ", as in GPT-2's file");
    }
  }
  const std::string text = contents(merges);
  std::map<std::pair<std::int64_t, std::int64_t>, int> lines;
  int number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    // Only there: "#" is a token like others.
    if (line.empty() || (number == 1 && line.starts_with("#version")))
      continue;
    const std::string where = merges.string() + ":" + std::to_string(number);
    const std::size_t space = line.find(' ');
    if (space == line.npos || space == 0 || space + 1 == line.size() ||
        line.find(' ', space + 1) != line.npos) {
      throw DataError(where + ": expected two tokens with a space between them, got " +
                      quote_text(line));
    }
    const auto number_of = [&](std::string_view letters) {
      const std::optional<std::int64_t> found = table.find(bytes_of_letters(letters, where));
      if (!found)
        throw DataError(where + ": " + quote_text(letters) + " is not in " + file);
      return *found;
    };
    const std::string_view left = line.substr(0, space);
    const std::string_view right = line.substr(space + 1);
    const std::pair pair(number_of(left), number_of(right));
    number_of(std::string(left) + std::string(right));
    if (const auto [earlier, is_new] = lines.emplace(pair, number); !is_new) {
      throw DataError(where + ": the pair " + quote_text(line) + " is that of line " +
                      std::to_string(earlier->second));
    }
    read.merges.push_back(pair);
  }
  return read;
}

}  // namespace treadle::tokenizers
