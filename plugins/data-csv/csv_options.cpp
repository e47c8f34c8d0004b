#include "csv_options.h"

namespace treadle::csv {
namespace {

// `key` holds one character, or none where `none` says what stands for it.
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

}  // namespace

CsvOptions::CsvOptions(const Config& config)
    : path(config.get<std::string>("path")),
      header(config.get_or("header", true)),
      skip_rows(config.get_or("skip_rows", std::int64_t{0})),
      separator(character(config, "separator", ',')),
      quote(character(config, "quote", '"')) {
  if (separator == '\0' || separator == quote)
    config.fail("separator", "must be a character, and another one than \"quote\"");
}

}  // namespace treadle::csv
