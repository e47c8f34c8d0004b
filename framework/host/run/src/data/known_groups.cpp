#include "data/known_groups.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/near_miss.h>
#include <treadle/core/data/abilities/fits_groups.h>

namespace treadle::internal {
namespace {

constexpr const char* kGroups = "groups";

std::vector<const Transform*> with_groups(std::span<const Transform* const> transforms) {
  std::vector<const Transform*> found;
  std::copy_if(transforms.begin(), transforms.end(), std::back_inserter(found),
               [](const Transform* one) { return one->ask<FitsGroups>() != nullptr; });
  return found;
}

std::string name_of(const GroupNames* names, std::int64_t group) {
  return names != nullptr ? names->name_of(group) : std::to_string(group);
}

}  // namespace

KnownGroups::KnownGroups(std::span<const Transform* const> transforms, const GroupNames* names)
    : by_group_(with_groups(transforms)) {
  for (const Transform* const transform : by_group_) {
    const at::Tensor groups = transform->ask<FitsGroups>()->groups().contiguous();
    const auto* const group = groups.data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < groups.numel(); ++i) {
      numbers_.emplace(name_of(names, group[i]), group[i]);
      unknown_ = std::min(unknown_, group[i] - 1);
    }
  }
}

at::Tensor KnownGroups::groups_of(const RowReader& rows) const {
  const at::Tensor groups = rows.groups();
  if (groups.defined())
    return groups.contiguous();
  if (by_group_.empty())
    return groups;
  throw DataError(by_group_.front()->origin() +
                  " has statistics for each group, and the rows have no groups; give them the "
                  "column or array that the training had");
}

void KnownGroups::add_for_outputs(const EvaluatedRows& data, const RowList& rows) {
  are_for_outputs_ = true;
  const at::Tensor groups = data.rows->groups();
  if (!groups.defined())
    return;
  const at::Tensor numbers = groups.contiguous();
  const auto* const group = numbers.data_ptr<std::int64_t>();
  std::unordered_set<std::int64_t> seen;
  for (const std::int64_t row : rows) {
    if (!seen.insert(group[row]).second)
      continue;
    numbers_.emplace(name_of(data.names, group[row]), group[row]);
    unknown_ = std::min(unknown_, group[row] - 1);
  }
}

KnownGroups::KnownGroups(std::span<const Transform* const> transforms,
                         const StateDict& preprocessing)
    : by_group_(with_groups(transforms)) {
  if (by_group_.empty() && !preprocessing.has_part(kGroups))
    return;
  are_for_outputs_ = by_group_.empty();
  const StateDict& saved = preprocessing.part(kGroups);
  const nlohmann::json& names = saved.value("names");
  const at::Tensor numbers = saved.tensor("numbers").to(at::kLong).contiguous();
  if (!names.is_array() || numbers.dim() != 1 ||
      numbers.size(0) != static_cast<std::int64_t>(names.size()))
    throw StorageError("saved groups must have a name and a number each");
  const auto* const number = numbers.data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < names.size(); ++i) {
    numbers_.emplace(names[i].get<std::string>(), number[i]);
    unknown_ = std::min(unknown_, number[i] - 1);
  }
}

void KnownGroups::save_in(StateDict& preprocessing) const {
  if (empty())
    return;
  std::vector<std::pair<std::int64_t, std::string>> ordered;
  ordered.reserve(numbers_.size());
  for (const auto& [name, number] : numbers_)
    ordered.emplace_back(number, name);
  std::sort(ordered.begin(), ordered.end());
  nlohmann::json names = nlohmann::json::array();
  at::Tensor numbers = at::empty({static_cast<std::int64_t>(ordered.size())}, at::kLong);
  auto* next = numbers.data_ptr<std::int64_t>();
  for (const auto& [number, name] : ordered) {
    names.push_back(name);
    *next++ = number;
  }
  StateDict saved;
  saved.put("names", std::move(names));
  saved.put("numbers", numbers);
  preprocessing.put(kGroups, std::move(saved));
}

void KnownGroups::expect_known(const EvaluatedRows& data, const RowList& rows) const {
  if (empty())
    return;
  const at::Tensor groups = groups_of(*data.rows);
  if (!groups.defined())
    return;
  const auto* const group = groups.data_ptr<std::int64_t>();
  std::unordered_set<std::int64_t> seen;
  std::vector<std::string> unknown;
  std::int64_t last = unknown_;
  // Rows of a group mostly follow one another: millions of them are passed over.
  for (const std::int64_t row : rows) {
    if (group[row] == last || !seen.insert(last = group[row]).second)
      continue;
    if (std::string name = name_of(data.names, last); !numbers_.contains(name))
      unknown.push_back(std::move(name));
  }
  expect_none(unknown);
}

at::Tensor KnownGroups::numbers_in(const EvaluatedRows& data) const {
  if (empty())
    return {};
  const at::Tensor groups = groups_of(*data.rows);
  if (!groups.defined())
    return {};
  at::Tensor numbers = at::empty_like(groups);
  const auto* const from = groups.data_ptr<std::int64_t>();
  auto* const to = numbers.data_ptr<std::int64_t>();
  std::unordered_map<std::int64_t, std::int64_t> places;
  std::vector<std::string> unknown;
  for (std::int64_t row = 0; row < groups.numel(); ++row) {
    const auto [found, is_new] = places.emplace(from[row], unknown_);
    if (is_new) {
      std::string name = name_of(data.names, from[row]);
      if (const auto known = numbers_.find(name); known != numbers_.end()) {
        found->second = known->second;
      } else {
        unknown.push_back(std::move(name));
      }
    }
    to[row] = found->second;
  }
  expect_none(unknown);
  return numbers;
}

at::Tensor KnownGroups::numbers_of(std::span<const std::string> names, std::int64_t rows) const {
  if (empty())
    return {};
  if (names.empty() && by_group_.empty())
    return {};
  if (static_cast<std::int64_t>(names.size()) != rows) {
    if (by_group_.empty()) {
      throw UsageError("PredictOptions::groups has " + std::to_string(names.size()) +
                       " names for " + std::to_string(rows) +
                       " rows; give each row the name of its "
                       "group, or none");
    }
    throw UsageError(
        by_group_.front()->origin() +
        " has statistics for each group, so predicting needs the group of each of the " +
        std::to_string(rows) + " rows, got " + std::to_string(names.size()) +
        "; pass their names in PredictOptions::groups");
  }
  at::Tensor numbers = at::empty({rows}, at::kLong);
  std::vector<std::string> unknown;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::string& name = names[static_cast<std::size_t>(row)];
    const auto known = numbers_.find(name);
    if (known == numbers_.end() && std::find(unknown.begin(), unknown.end(), name) == unknown.end())
      unknown.push_back(name);
    numbers.data_ptr<std::int64_t>()[row] = known == numbers_.end() ? unknown_ : known->second;
  }
  expect_none(unknown);
  return numbers;
}

void KnownGroups::expect_none(const std::vector<std::string>& unknown) const {
  constexpr std::size_t kMostNamed = 5;
  if (unknown.empty())
    return;
  for (const Transform* const transform : by_group_) {
    if (transform->ask<FitsGroups>()->takes_other_groups())
      continue;
    const bool are_many = unknown.size() > kMostNamed;
    const std::vector<std::string> named(
        unknown.begin(),
        unknown.begin() + static_cast<std::ptrdiff_t>(std::min(unknown.size(), kMostNamed)));
    throw DataError(
        transform->origin() + " has statistics for each group of its training rows, and none for " +
        name_list(named) +
        (are_many ? " and " + std::to_string(unknown.size() - kMostNamed) + " more" : "") +
        ", which no training row belongs to; leave these rows out, or set "
        "\"handle_unknown\": \"overall\" for the statistics of all training rows");
  }
}

}  // namespace treadle::internal
