#pragma once

#include <array>
#include <string>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/data/data_spec.h>

namespace treadle::internal {

/// What a document gets where it says nothing, by the kind of target.
struct TargetDefaults {
  TargetKind kind;
  const char* task;
  const char* loss;
  std::array<const char*, 2> metrics;
  const char* report_metric;  ///< null: none
};
const TargetDefaults& defaults_for(TargetKind kind);

/// "classification", "regression", …; of several targets, one after the other.
std::string task_of(const std::vector<TargetSpec>& targets);

/// What the names of a target's metrics begin with: nothing where there is one target only.
std::string metric_prefix(const std::vector<TargetSpec>& targets, const TargetSpec& target);

/// The target that a component names by "target", or the only one. Fails at its slot where there is
/// no such target, or it names none of several.
std::size_t target_of(const std::vector<TargetSpec>& targets, const Config& slot);

}  // namespace treadle::internal
