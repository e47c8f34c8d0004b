#pragma once

#include <array>
#include <string>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/data/data_spec.h>

namespace treadle::internal {

/// The defaults of a document, by the kind of target.
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

/// The prefix of a target's metric names: empty where it is the only target.
std::string metric_prefix(const std::vector<TargetSpec>& targets, const TargetSpec& target);

/// The target that a component names by "target", or the only one. Fails at its slot where there is
/// no such target, or it names none of several.
std::size_t target_of(const std::vector<TargetSpec>& targets, const Config& slot);

}  // namespace treadle::internal
