#include <treadle/testing/support/expect_problem.h>

#include <gtest/gtest.h>
#include <treadle/base/error.h>
#include <treadle/base/problem.h>
#include <algorithm>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

namespace treadle::testing {

::testing::AssertionResult tells(const std::string& message, std::string_view place,
                                 std::initializer_list<std::string_view> words) {
  if (!message.starts_with(place))
    return ::testing::AssertionFailure() << message << "\ndoes not begin with " << place;
  for (const std::string_view word : words) {
    if (message.find(word, place.size()) == std::string::npos)
      return ::testing::AssertionFailure() << message << "\ndoes not say " << word;
  }
  return ::testing::AssertionSuccess();
}

void expect_problem(const std::function<void()>& action, ErrorKind kind, std::string_view pointer,
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
