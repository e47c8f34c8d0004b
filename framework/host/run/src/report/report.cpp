#include <treadle/host/run/report.h>

#include <optional>
#include <utility>

#include "report/page/report_page.h"
#include "report/sections/sections.h"
#include "result/json_path.h"

namespace treadle {
namespace {

using internal::at_path;
using internal::text_at_path;
using report::List;

/// Name and date, task, folds and model.
std::string subtitle(const ReportInput& input, const report::Numbers& numbers) {
  const nlohmann::json& architecture = at_path(input.result, {"model_info", "architecture"});
  const std::string folds = !numbers.folds.empty()
                                ? std::to_string(numbers.folds.size()) + "-fold cross-validation"
                                : std::string();
  std::string text;
  for (const std::string& part :
       {text_at_path(input.result, {"started_at"}), text_at_path(input.result, {"task"}), folds,
        architecture.is_string() ? architecture.get<std::string>()
                                 : text_at_path(architecture, {"use"})}) {
    if (!part.empty())
      text += (text.empty() ? "" : " · ") + part;
  }
  return text;
}

/// A record of the result as it is.
nlohmann::json record_block(std::string_view kind, const nlohmann::json& record) {
  return {{"block", kind}, {"record", record}};
}

/// The run without its search: the fits of the best trial's values, as those of an ordinary run.
ReportInput without_trials(const ReportInput& input) {
  return {input.name, input.result, input.document, report::own_curves(input), input.model};
}

}  // namespace

nlohmann::json report_document(const ReportInput& given) {
  const ReportInput input = without_trials(given);
  const nlohmann::json& result = input.result;
  const report::Numbers numbers = report::read_numbers(result);
  nlohmann::json document{{"title", input.name},
                          {"kind", "training report"},
                          {"version", text_at_path(input.result, {"environment", "treadle"})},
                          {"subtitle", subtitle(input, numbers)},
                          {"blocks", nlohmann::json::array()}};
  const auto add = [&](const List& blocks) {
    for (const nlohmann::json& block : blocks) {
      if (!block.is_null())
        document["blocks"].push_back(block);
    }
  };
  add({report::headline(result, numbers), report::result_section(input, numbers),
       report::baselines(result, numbers)});
  if (const std::optional<report::SearchRecord> search = report::read_search(result)) {
    document["search"] = report::search_data(*search, given);
    add(report::search_section(*search));
  }
  add({report::folds_in_time(result)});
  for (const nlohmann::json& structure : at_path(result, {"structures"}))
    add({record_block("structure", structure)});
  if (const nlohmann::json& tested = at_path(result, {"prequential"});
      !at_path(tested, {"windows"}).empty())
    add({record_block("adaptation", tested)});
  if (nlohmann::json epochs = report::epochs_of(input, numbers); !epochs.is_null())
    document["epochs"] = std::move(epochs);
  add(report::curves(document.value("epochs", nlohmann::json()), numbers));
  add(report::result_tables(result, numbers));
  add({report::model_parts(input.model)});
  if (const nlohmann::json& data = at_path(result, {"data"}); data.is_object())
    add({record_block("data", data)});
  add(report::background(input));
  return document;
}

std::string render_report(const ReportInput& input) {
  return report::page(report_document(input));
}

}  // namespace treadle
