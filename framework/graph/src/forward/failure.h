#pragma once

#include <string>
#include <vector>

#include <treadle/base/error.h>

namespace treadle::graph {

/// A failure on its way out of a graph, which learns where it was as it goes.
class Failure {
 public:
  Failure(ErrorKind kind, std::string text) : kind_(kind), text_(std::move(text)) {}

  void came_through(std::string where) { way_.push_back(std::move(where)); }
  /// As the error people see: a PluginError or a TrainingError.
  [[noreturn]] void raise() const;
  std::string text() const;

 private:
  ErrorKind kind_;
  std::string text_;
  std::vector<std::string> way_;  // innermost first
};

/// Within a catch: throws a Failure with this place added to its way. What ends a thread, a stop
/// and std::bad_alloc pass as they are.
[[noreturn]] void rethrow_within(const std::string& place);

/// The same for the innermost place: `text_before` is what failed and how.
[[noreturn]] void rethrow_failed(const std::string& place, const std::string& text_before);

/// What an exception in flight says to people, libtorch's without their stack trace. For use within
/// a catch.
std::string words_in_flight();

}  // namespace treadle::graph
