#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/core/distributed/communicator.h>
#include <treadle/host/run/runtime.h>

/// The conditions under which processes can train together, as far as they are known without data:
/// for checks. A training compares them again, and its data.
namespace treadle {

/// The value `mine` of each process, by rank. All processes call it. Throws CommunicationError.
std::vector<nlohmann::json> from_all_ranks(Communicator& communicator, const nlohmann::json& mine);

/// Throws a UsageError for a search whose trials processes cannot train together, sharing the
/// shards of each step: all make the same decisions, so none may depend on one process alone.
void expect_shared_steps(const nlohmann::json& resolved);

/// Throws the error with which a training of this document by these processes would end, as far as
/// the document tells without its data. Whether processes divide fits, which need no shards, may
/// depend on the data: such a document is not refused here.
void expect_shareable(Communicator& communicator, const nlohmann::json& resolved);

/// "environment", with keys of environment.json: versions of Treadle, libtorch and BLAS, the
/// kernels for this processor, the plugins of the document and of the component `communicator`.
/// "document": the values that bits depend on. `resolved`: null without a document.
nlohmann::json shared_conditions(const Runtime& runtime, const nlohmann::json& resolved,
                                 const std::string& communicator);

/// A sentence for each difference between the conditions of rank 0 and those of `rank` that changes
/// bits. Empty: they may train together.
std::vector<std::string> shared_differences(const nlohmann::json& first, const nlohmann::json& its,
                                            std::int64_t rank);

}  // namespace treadle
