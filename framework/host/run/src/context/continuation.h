#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <treadle/host/catalog/workflow_document.h>
#include <treadle/host/run/run_folder.h>
#include <treadle/host/run/runtime.h>

namespace treadle::internal {

/// The key under which the conditions of a run name the one it goes on from.
inline constexpr const char* kContinued = "from";

/// Puts into `folder`, that of a new run of `workflow`, what the run in `before` would resume from:
/// the newest checkpoint of each of its trainings, with its rows of history, as if it had been
/// stopped there and not ended. Resuming `folder` then trains on from its weights and state.
///
/// **Rationale:** a new run that begins with checkpoints needs nothing that a resumed one does not
/// have, and can be stopped, killed and resumed itself.
///
/// `workflow` is the document of `before` but for what may change in a training that goes on:
/// its length, its conditions to stop, its rates. Throws UsageError naming everything else that
/// differs, and where nothing would be trained; StorageError where `before` has no good checkpoint.
void begin_from(const RunFolder& before, const Runtime& runtime, const ResolvedWorkflow& workflow,
                const RunFolder& folder);

/// What people are told of the value under kContinued: "goes on from runs/iris-…: final after epoch
/// 3".
std::string continued_text(const nlohmann::json& from);

}  // namespace treadle::internal
