#pragma once

#include <functional>
#include <string>

#include <treadle/core/distributed/communicator.h>
#include <treadle/host/run/run_folder.h>
#include <treadle/host/run/run_options.h>

#include "context/run_conditions.h"

/// A run that several processes train together (RunOptions::communicator).
namespace treadle::internal {

/// Refuses, in all processes, to train under conditions that differ among them, unless that is
/// allowed; then they are noted. Throws TrainingError with the first rank that differs from rank 0,
/// and in what.
void expect_same_conditions(Communicator& communicator, const RunConditions& conditions,
                            bool allow_differences,
                            const std::function<void(const std::string&)>& note);

/// Opens the run at `path`. Of several processes that of rank 0 does; each other one is sent its
/// files, of which it makes a private run in `options.output`: they need no file system together.
RunFolder open_together(const std::filesystem::path& path, const RunOptions& options);

}  // namespace treadle::internal
