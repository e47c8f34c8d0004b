#pragma once

#include <algorithm>
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
inline ::testing::AssertionResult tells(const std::string& message, std::string_view place,
                                        std::initializer_list<std::string_view> words) {
  if (!message.starts_with(place))
    return ::testing::AssertionFailure() << message << "\ndoes not begin with " << place;
  for (const std::string_view word : words) {
    if (message.find(word, place.size()) == std::string::npos)
      return ::testing::AssertionFailure() << message << "\ndoes not say " << word;
  }
  return ::testing::AssertionSuccess();
}

/// Expects an Error of this kind; in a DocumentError a problem at `pointer`, else a message that
/// begins with `pointer`; and `words` in it.
inline void expect_problem(const std::function<void()>& action, ErrorKind kind,
                           std::string_view pointer,
                           std::initializer_list<std::string_view> words) {
  try {
    action();
  } catch (const DocumentError& error) {
    EXPECT_EQ(error.kind(), kind);
    EXPECT_TRUE(std::any_of(error.problems().begin(), error.problems().end(),
                            [&](const Problem& problem) {
                              return problem.pointer == pointer &&
                                     tells(problem.message, "", words);
                            }))
        << "no problem at \"" << pointer << "\" has those words:\n"
        << error.what();
    return;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    EXPECT_TRUE(tells(error.what(), pointer, words));
    return;
  }
  ADD_FAILURE() << "nothing was refused";
}

}  // namespace treadle::testing
