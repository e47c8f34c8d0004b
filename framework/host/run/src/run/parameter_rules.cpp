#include "run/parameter_rules.h"

#include <map>
#include <string>

#include <treadle/core/training/optimizer_abilities.h>

namespace treadle::internal {

nlohmann::json parameter_rules(Fit& fit) {
  std::map<std::string, std::size_t> group_of;  // 0: none
  bool any_chooses = fit.optimizer().ask<NamesRules>() != nullptr;
  for (std::size_t i = 0; i < fit.groups().size(); ++i) {
    for (const std::string& name : fit.groups()[i].parameters)
      group_of[name] = i + 1;
    any_chooses = any_chooses || fit.groups()[i].optimizer->ask<NamesRules>() != nullptr;
  }
  if (!any_chooses)
    return nullptr;
  nlohmann::json rules = nlohmann::json::object();
  for (const Segment& segment : segments_of(fit.model())) {
    const std::size_t group = group_of[segment.name];
    const Optimizer& its = group == 0 ? fit.optimizer() : *fit.groups()[group - 1].optimizer;
    const auto* const names = its.ask<NamesRules>();
    std::string rule = group == 0 ? "" : "group " + std::to_string(group);
    if (names != nullptr)
      rule += (rule.empty() ? "" : ", ") + names->rule_of(segment);
    else if (rule.empty())
      rule = "other parameters";
    rules[segment.frozen ? "frozen" : rule].push_back(segment.name);
  }
  return rules;
}

}  // namespace treadle::internal
