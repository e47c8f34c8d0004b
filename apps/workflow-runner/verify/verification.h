#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "command_line/command_line.h"

namespace treadle::cli {

/// What became of a run that was trained again.
struct Verification {
  std::string run;
  std::vector<std::string> differences;  ///< empty: the same bits
  std::vector<std::string> conditions;   ///< those that are others here
  std::vector<double> killed_after;      ///< the seconds of each process that was killed
  std::string folder;                    ///< of the new run; empty: it was deleted
};

/// Trains the run that the line names, from its own document and data, and compares. Throws what
/// keeps it from that; AlreadyTold with the exit code of the training where that failed.
Verification verify_run(const CommandLine& line);

nlohmann::json json_of(const Verification& verification);
std::string text_of(const Verification& verification);

/// The file that lets another machine verify a run.
void write_bundle(const CommandLine& line);

}  // namespace treadle::cli
