#pragma once

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace treadle::testing {

/// Whether `text` is what the file holds, to the byte. With TREADLE_UPDATE_GOLDEN=1 in the
/// environment the file is written instead, for a person to read and commit:
///
///     EXPECT_TRUE(matches_golden(report, source_path(TREADLE_TEST_DATA) / "report.txt"));
::testing::AssertionResult matches_golden(const std::string& text,
                                          const std::filesystem::path& file);

}  // namespace treadle::testing
