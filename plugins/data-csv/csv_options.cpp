#include "csv_options.h"

#include <algorithm>

#include <treadle/table/byte_source.h>
#include <treadle/table/source_files.h>

namespace treadle::csv {
namespace {

// `key` holds one character, or none, which is 0.
char character(const Config& config, const char* key, char fallback) {
  if (!config.has(key))
    return fallback;
  const auto text = config.get<std::string>(key);
  if (text.empty())
    return '\0';
  if (text.size() > 1 || text == "\n" || text == "\r" || text[0] == '\0')
    config.fail(key, "must be one ASCII character that does not end a line");
  return text[0];
}

/// A sign within numbers: no digit, no part of another sign of numbers.
void check_sign(const Config& config, const char* key, const std::string& sign) {
  const bool is_taken = std::any_of(sign.begin(), sign.end(), [](char c) {
    return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '\n' || c == '\r' || c == '\0' ||
           (c | 0x20) == 'e';
  });
  if (is_taken)
    config.fail(key, "must be a sign that numbers have no other use for, such as \",\"");
}

}  // namespace

CsvOptions::CsvOptions(const Config& config)
    : paths(table::paths_of(config, "path")),
      header(config.get_or("header", true)),
      skip_rows(config.get_or("skip_rows", std::int64_t{0})),
      separator(character(config, "separator", ',')),
      quote(character(config, "quote", '"')),
      encoding(config.get_or<std::string>("encoding", "utf-8")),
      numbers{config.get_or<std::string>("decimal", "."),
              config.get_or<std::string>("thousands", "")} {
  if (separator == '\0' || separator == quote)
    config.fail("separator", "must be a character, and another one than \"quote\"");
  if (!table::is_encoding(encoding)) {
    config.fail("encoding",
                "is \"" + encoding + "\", which is unknown to iconv; \"iconv -l\" lists encodings");
  }
  check_sign(config, "decimal", numbers.decimal);
  check_sign(config, "thousands", numbers.thousands);
  if (numbers.decimal.empty())
    config.fail("decimal", "must be a character, such as \",\"");
  if (numbers.decimal == numbers.thousands)
    config.fail("thousands", "must be another character than \"decimal\"");
  // Quoted fields may have the separator, but "decimal": "," in a file of commas is a mistake.
  if (numbers.decimal != "." && numbers.decimal == std::string(1, separator))
    config.fail("decimal", "must be another character than \"separator\"");
}

}  // namespace treadle::csv
