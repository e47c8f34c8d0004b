#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/problem.h>
#include <treadle/host/run/runtime.h>

namespace treadle::internal {

class DocumentComponents;
class Dataset;

/// A network that a run's model is compared with: the document's `baselines`.
struct Baseline {
  std::string name;     ///< a part of a fit's path; no two have the same
  std::string pointer;  ///< in the run's document: "/baselines/0"
  /// The run's document with this network as its model.
  std::shared_ptr<const ResolvedWorkflow> workflow;
};

/// In the document's order. Throws a DocumentError at the baseline that cannot be a model.
std::vector<Baseline> baselines_of(const Runtime& runtime, const ResolvedWorkflow& workflow);

/// Makes the network of each, for the data and the first fold of the run's `components`. Throws a
/// DocumentError at the baseline that does not fit the data or the loss.
void expect_networks(const Runtime& runtime, const ResolvedWorkflow& run,
                     const std::vector<Baseline>& baselines, const Dataset& dataset,
                     const DocumentComponents& components);

/// Throws a DocumentError at `pointer` of the run's document, of the problems of another one or of
/// a network that does not fit the data. Expects that one of them is being handled.
[[noreturn]] void rethrow_at(const ResolvedWorkflow& run, const std::string& pointer);

/// Does work with the network of a baseline: its problems are those of its place in the run's
/// document.
template <typename Work>
decltype(auto) at_baseline(const ResolvedWorkflow& run, const std::string& pointer, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const DocumentError&) {
    rethrow_at(run, pointer);
  } catch (const DataError&) {
    rethrow_at(run, pointer);
  }
}

}  // namespace treadle::internal
