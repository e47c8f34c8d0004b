#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace treadle::benchmarks {

/// A program that ran to its end.
struct Finished {
  int status = 0;      ///< its exit code; 128 and the signal's number when one ended it
  std::string output;  ///< what it printed
  std::string errors;  ///< what it printed to the standard error
  std::chrono::steady_clock::time_point started;
  double seconds = 0;           ///< from its start to its end
  std::int64_t peak_bytes = 0;  ///< the most memory it had
};

using Environment = std::map<std::string, std::string>;

class CannotStart : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Starts `words` with `environment` over this process' own, and waits. Throws CannotStart.
Finished run_program(const std::vector<std::string>& words, const Environment& environment);

/// For messages: the words with blanks between them.
std::string text_of(const std::vector<std::string>& words);

}  // namespace treadle::benchmarks
