#include "fit/baselines.h"

#include <map>

#include <treadle/base/json_words.h>

#include "components/document_components.h"
#include "fit/fit.h"

namespace treadle::internal {

std::vector<Baseline> baselines_of(const Runtime& runtime, const ResolvedWorkflow& workflow) {
  const nlohmann::json builders = workflow.resolved.value("baselines", nlohmann::json::array());
  std::vector<Baseline> baselines;
  std::map<std::string, int> times;
  for (std::size_t i = 0; i < builders.size(); ++i) {
    std::string name = builders[i].at("use").get<std::string>();
    name.erase(0, name.find('/') + 1);  // the plugin's id, where it is needed
    if (const int before = times[name]++; before > 0)
      name += "-" + std::to_string(before + 1);
    nlohmann::json document = workflow.resolved;
    document.erase("baselines");
    if (document.contains("optimizer"))
      document["optimizer"].erase("groups");  // they name parameters of the run's own model
    document["model"] = {
        {"use", "flow"},
        {"flow", nlohmann::json::array({{{"use", "graph"}, {"builder", builders[i]}}})}};
    const std::string pointer = child_pointer("/baselines", i);
    at_baseline(workflow, pointer, [&] {
      baselines.push_back(
          {name, pointer,
           std::make_shared<const ResolvedWorkflow>(runtime.resolve(std::move(document)))});
    });
  }
  return baselines;
}

void expect_networks(const Runtime& runtime, const ResolvedWorkflow& run,
                     const std::vector<Baseline>& baselines, const Dataset& dataset,
                     const DocumentComponents& components) {
  const Fold& fold = components.first_fold();
  for (const Baseline& baseline : baselines) {
    at_baseline(run, baseline.pointer, [&] {
      const DocumentComponents own(runtime, *baseline.workflow, dataset);
      Fit(own, {{baseline.name, 0, 1}, {fold.training, fold.validation, 0}});
    });
  }
}

void rethrow_at(const ResolvedWorkflow& run, const std::string& pointer) {
  const Place place = run.document->place_of(pointer);
  std::vector<Problem> problems;
  try {
    throw;
  } catch (const DocumentError& error) {
    for (const Problem& problem : error.problems())
      problems.push_back({place, pointer, problem.message, problem.plugin_at_fault});
  } catch (const Error& error) {
    problems.push_back({place, pointer, error.what()});
  }
  throw DocumentError(std::move(problems));
}

}  // namespace treadle::internal
