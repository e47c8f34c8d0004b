#include <treadle/host/run/report.h>

#include <optional>
#include <utility>

#include "report/report_html.h"
#include "report/report_page.h"
#include "report/sections/report_adaptation.h"
#include "report/sections/report_data.h"
#include "report/sections/report_folds.h"
#include "report/sections/report_model.h"
#include "report/sections/report_search.h"
#include "report/sections/report_sections.h"
#include "report/sections/report_structure.h"

namespace treadle {
namespace {

std::string version(const ReportInput& input) {
  const auto environment = input.result.find("environment");
  if (environment == input.result.end() || !environment->is_object())
    return {};
  const auto treadle = environment->find("treadle");
  return treadle != environment->end() && treadle->is_string()
             ? html::escape(treadle->get_ref<const std::string&>())
             : std::string();
}

/// The run without its search: the fits of the best trial's values, as those of an ordinary run.
ReportInput without_trials(const ReportInput& input) {
  return {input.name, input.result, input.document, report::own_curves(input), input.model};
}

std::string render(const ReportInput& input, const report::SearchReport* search) {
  report::PageParts parts;
  parts["name"] = html::escape(input.name);
  parts["kind"] = "training report";
  parts["version"] = version(input);
  parts["subtitle"] = report::subtitle(input);
  parts["body"] = report::headline(input) + report::metric_table(input) +
                  report::baseline_table(input) + (search != nullptr ? search->html() : "") +
                  report::folds_card(input) + report::structures(input) +
                  report::adaptation(input) + report::curves(input) + report::result_tables(input) +
                  report::model_parts(input) + report::data_section(input) +
                  report::background(input);
  nlohmann::json data = report::chart_data(input);
  if (search != nullptr)
    data["search"] = search->data();
  parts["data"] = html::script_json(data);
  return report::page(std::move(parts));
}

}  // namespace

std::string render_report(const ReportInput& input) {
  std::optional<report::SearchRecord> record = report::read_search(input.result);
  if (!record)
    return render(input, nullptr);
  const report::SearchReport search(*std::move(record), input);
  return render(without_trials(input), &search);
}

}  // namespace treadle
