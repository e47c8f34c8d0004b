#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <treadle/core/distributed/communicator.h>
#include <treadle/host/record/run_result.h>
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

/// The text of rank 0, in all processes.
std::string said_by_first(Communicator& communicator, std::string text);

/// Whether any process says so, in all of them. Null: `mine`.
bool any_says(Communicator* communicator, bool mine);

/// Sends the files in `folder` of rank 0, as they are, into `folder` of each other process; not
/// those whose path has a part among `left_out`.
void send_files(Communicator& communicator, const std::filesystem::path& folder,
                const std::set<std::filesystem::path>& left_out);

/// The hosts of all processes, by rank.
std::vector<std::string> hosts_by_rank(Communicator& communicator);

/// "3 processes train together: ranks 0-1 on node-1, rank 2 on node-2"
std::string group_text(const std::vector<std::string>& hosts);

/// Which part of their time the processes have worked, and spent in exchanges, by rank. `own`: of
/// this one. Empty where one
/// of them is gone: the trained model does not depend on it. Throws nothing.
std::vector<RankTime> times_by_rank(Communicator& communicator, const TimeResult& own);

/// Opens the run at `path`. Of several processes that of rank 0 does; each other one is sent its
/// files, of which it makes a private run in `options.output`: they need no file system together.
RunFolder open_together(const std::filesystem::path& path, const RunOptions& options);

}  // namespace treadle::internal
