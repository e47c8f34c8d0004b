#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/base/problem.h>

/// Tests compare the code, the place and the key words of a message: what its reader needs to act.
/// The prose around them may be improved. Some sentences stand whole, as golden ones, in
/// tests/cli/bad_input_test.cpp.
namespace treadle::testing {

/// Whether `message` begins with `place` ("x.csv:3", "" for none) and has all of `words` behind it,
/// in any order.
::testing::AssertionResult tells(const std::string& message, std::string_view place,
                                 std::initializer_list<std::string_view> words);

/// Expects an Error of this kind; in a DocumentError a problem at `pointer`, else a message that
/// begins with `pointer`; and `words` in it.
void expect_problem(const std::function<void()>& action, ErrorKind kind, std::string_view pointer,
                    std::initializer_list<std::string_view> words);

}  // namespace treadle::testing
