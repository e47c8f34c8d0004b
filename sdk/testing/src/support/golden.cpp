#include <treadle/testing/support/golden.h>

#include <gtest/gtest.h>
#include <treadle/base/error.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace treadle::testing {

::testing::AssertionResult matches_golden(const std::string& text,
                                          const std::filesystem::path& file) {
  const char* update = std::getenv("TREADLE_UPDATE_GOLDEN");
  if (update != nullptr && std::string_view(update) == "1") {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream written(file, std::ios::binary | std::ios::trunc);
    written << text;
    written.close();
    if (!written)
      throw StorageError(file.string() + ": cannot be written");
    return ::testing::AssertionSuccess();
  }
  constexpr const char* kRemedy = "; TREADLE_UPDATE_GOLDEN=1 writes it anew";
  std::ifstream stored(file, std::ios::binary);
  if (!stored)
    return ::testing::AssertionFailure() << file.string() << ": cannot be read" << kRemedy;
  std::ostringstream content;
  content << stored.rdbuf();
  const std::string expected = content.str();
  if (text == expected)
    return ::testing::AssertionSuccess();

  std::istringstream got_lines(text);
  std::istringstream expected_lines(expected);
  std::string got_line;
  std::string expected_line;
  for (int line = 1;; ++line) {
    const bool got_ends = !std::getline(got_lines, got_line);
    const bool expected_ends = !std::getline(expected_lines, expected_line);
    if (got_ends && expected_ends) {
      return ::testing::AssertionFailure()
             << file.string() << ": only the line end at the end of the text differs" << kRemedy;
    }
    if (got_ends || expected_ends || got_line != expected_line) {
      const auto shown = [](bool ends, const std::string& text) {
        return ends ? "the end of the text" : "\"" + text + "\"";
      };
      return ::testing::AssertionFailure()
             << file.string() << ":" << line << ": expected " << shown(expected_ends, expected_line)
             << ", got " << shown(got_ends, got_line) << kRemedy;
    }
  }
}

}  // namespace treadle::testing
