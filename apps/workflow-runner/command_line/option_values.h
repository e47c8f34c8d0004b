#pragma once

#include <charconv>
#include <string>
#include <system_error>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "command_line/command_line.h"

// What the values of options mean. All throw a UsageError that names the option.
namespace treadle::cli {

/// The number that an option is given, where `wanted` says which numbers there are: "a whole
/// number".
template <typename Number>
Number number_of(const CommandLine& line, const char* option, const char* wanted) {
  const std::string text = line.text(option);
  Number number{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) {
    throw UsageError("--" + std::string(option) + ": expected " + wanted + ", got " +
                     quote_text(text));
  }
  return number;
}

/// The names of columns in all values of an option, each once. A value is a line of CSV:
/// `id,"size, in m"` are two names. `example` is shown where a quote is not closed.
std::vector<std::string> column_names(const CommandLine& line, const std::string& option,
                                      const std::string& example = "id,\"size, in m\"");

/// The device that a model is used on: --device, or "auto".
std::string device_for_use(const CommandLine& line);

}  // namespace treadle::cli
