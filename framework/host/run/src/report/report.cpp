#include <treadle/host/run/report.h>

#include <optional>
#include <utility>

#include "report/page/report_page.h"
#include "report/sections/sections.h"
#include "result/json_path.h"
#include "store/trial_paths.h"

namespace treadle {
namespace {

using internal::text_at_path;
using report::append;
using report::List;

/// Name and date, task, folds and model.
List subtitle(const RunResult& result, std::size_t folds) {
  const nlohmann::json& architecture = result.training.model_info.architecture;
  List parts{result.started_at, result.task,
             folds > 0 ? std::to_string(folds) + "-fold cross-validation" : "",
             architecture.is_object() ? internal::at_path(architecture, {"use"}) : architecture};
  std::erase_if(parts, [](const nlohmann::json& part) { return part.is_null() || part == ""; });
  return parts;
}

/// The run without its search: the fits of the best trial's values, as those of an ordinary run.
ReportInput without_trials(ReportInput input) {
  std::erase_if(input.curves, [](const TrainingCurve& curve) {
    return internal::trial_in_path(curve.fit).has_value();
  });
  return input;
}

}  // namespace

nlohmann::json report_document(const ReportInput& given) {
  const ReportInput input = without_trials(given);
  const RunResult& result = input.result;
  const report::Numbers numbers = report::read_numbers(result);
  nlohmann::json document{{"title", input.name},
                          {"kind", "training report"},
                          {"version", text_at_path(result.environment, {"treadle"})},
                          {"subtitle", subtitle(result, numbers.folds.size())}};
  List blocks{report::headline(result, numbers), report::result_section(input, numbers),
              report::outputs(result, numbers), report::baselines(result, numbers)};
  if (result.search) {
    const report::SearchRecord search = report::read_search(*result.search);
    document["search"] = report::search_data(search, given);
    append(blocks, report::search_section(search));
  }
  blocks.push_back(report::folds_in_time(result.plan));
  for (const StructureResult& structure : result.training.structures)
    blocks.push_back(report::record("structure", to_json(structure)));
  if (result.training.prequential && !result.training.prequential->windows.empty())
    blocks.push_back(report::record("adaptation", to_json(*result.training.prequential)));
  const nlohmann::json epochs = report::epochs_of(input, numbers);
  if (!epochs.is_null())
    document["epochs"] = epochs;
  append(blocks, report::curves(epochs, numbers));
  blocks.push_back(report::milestones(result));
  append(blocks, report::result_tables(result, numbers));
  append(blocks, report::reasons_section(input.reasons));
  blocks.push_back(report::model_parts(input.model));
  blocks.push_back(report::record("data", result.data));
  append(blocks, report::background(input));
  std::erase_if(blocks, [](const nlohmann::json& block) { return block.is_null(); });
  document["blocks"] = std::move(blocks);
  return document;
}

std::string render_report(const ReportInput& input) {
  return report::page(report_document(input));
}

}  // namespace treadle
