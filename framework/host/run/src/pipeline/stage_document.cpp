#include "pipeline/stage_document.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <utility>

#include <treadle/base/json_words.h>

namespace treadle::internal {
namespace {

using nlohmann::json;

bool replaces(const json& base, const json& patch) {
  return !patch.is_object() || patch.contains("use") || !base.is_object();
}

void merge(json& base, const json& patch) {
  if (replaces(base, patch)) {
    base = patch;
    return;
  }
  for (const auto& [key, value] : patch.items()) {
    if (value.is_null()) {
      base.erase(key);
    } else {
      merge(base[key], value);
    }
  }
}

std::vector<std::string> keys_of(std::string_view pointer) {
  std::vector<std::string> keys;
  for (; !pointer.empty(); pointer = parent_pointer(pointer))
    keys.push_back(last_key(pointer));
  std::reverse(keys.begin(), keys.end());
  return keys;
}

/// The member or element; null where there is none.
const json* part_of(const json& value, const std::string& key) {
  if (value.is_object()) {
    const auto found = value.find(key);
    return found == value.end() ? nullptr : &*found;
  }
  const bool is_number = key.find_first_not_of("0123456789") == std::string::npos;
  if (!value.is_array() || !is_number)
    return nullptr;
  const json::json_pointer element("/" + key);
  return value.contains(element) ? &value.at(element) : nullptr;
}

/// How many of the keys lead to a value.
std::size_t depth_in(const json& value, const std::vector<std::string>& keys) {
  const json* at = &value;
  std::size_t depth = 0;
  while (depth < keys.size() && (at = part_of(*at, keys[depth])) != nullptr)
    ++depth;
  return depth;
}

/// Whether the stage's keys put something of their own where `keys` lead, or around it.
bool is_replaced(const json& base, const json& patch, const std::vector<std::string>& keys) {
  const json* shared = &base;
  const json* own = &patch;
  for (const std::string& key : keys) {
    own = part_of(*own, key);
    if (own == nullptr)
      return false;
    shared = part_of(*shared, key);
    if (shared == nullptr || replaces(*shared, *own))
      return true;
  }
  return false;
}

}  // namespace

std::string run_pointer(const std::string& stage) {
  return child_pointer(child_pointer(child_pointer("", kStagesKey), stage), kRunKey);
}

Problem placed(const Document& pipeline, const std::string& stage, Problem problem) {
  if (!problem.place.file.empty())
    return problem;
  problem.pointer = pointer_in_pipeline(pipeline.value(), stage, problem.pointer);
  problem.place = pipeline.place_of(problem.pointer);
  return problem;
}

json run_document(const json& pipeline, const std::string& stage) {
  json merged = pipeline;
  merged.erase(kStagesKey);
  // Not by merge(): a pipeline has no component for its whole.
  for (const auto& [key, value] : pipeline.at(kStagesKey).at(stage).at(kRunKey).items()) {
    if (value.is_null()) {
      merged.erase(key);
    } else {
      merge(merged[key], value);
    }
  }
  merged["name"] = stage;
  return merged;
}

std::string pointer_in_pipeline(const json& pipeline, const std::string& stage,
                                const std::string& pointer) {
  const json& patch = pipeline.at(kStagesKey).at(stage).at(kRunKey);
  const std::vector<std::string> keys = keys_of(pointer);
  const std::string own = run_pointer(stage) + pointer;
  if (is_replaced(pipeline, patch, keys))
    return own;
  const std::size_t in_stage = depth_in(patch, keys);
  const std::size_t in_pipeline = depth_in(pipeline, keys);
  return in_stage > 0 && in_stage >= in_pipeline ? own : pointer;
}

void StageProblems::add(const std::string& stage, std::vector<Problem> problems) {
  checked_.insert(stage);
  for (Problem& one : problems) {
    Problem problem = placed(pipeline_, stage, std::move(one));
    const auto same = std::find_if(found_.begin(), found_.end(), [&](const Found& found) {
      return found.problem.text() == problem.text();
    });
    if (same != found_.end()) {
      same->stages.insert(stage);
    } else {
      const bool is_shared = !problem.pointer.starts_with(run_pointer(stage));
      found_.push_back({std::move(problem), {stage}, is_shared});
    }
  }
}

std::vector<Problem> StageProblems::take() {
  std::vector<Problem> problems;
  for (const Found& found : found_) {
    if (!found.is_shared || found.stages == checked_) {
      problems.push_back(found.problem);
      continue;
    }
    for (const std::string& stage : found.stages) {
      problems.push_back(found.problem);
      problems.back().message = "stage " + stage + ": " + found.problem.message;
    }
  }
  std::stable_sort(problems.begin(), problems.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.place.line, a.place.column) < std::tie(b.place.line, b.place.column);
  });
  return problems;
}

}  // namespace treadle::internal
