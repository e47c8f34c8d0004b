#include <treadle/host/run/report.h>

#include <utility>

#include "report/report_adaptation.h"
#include "report/report_data.h"
#include "report/report_folds.h"
#include "report/report_html.h"
#include "report/report_model.h"
#include "report/report_page.h"
#include "report/report_sections.h"

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

}  // namespace

std::string render_report(const ReportInput& input) {
  report::PageParts parts;
  parts["name"] = html::escape(input.name);
  parts["kind"] = "training report";
  parts["version"] = version(input);
  parts["subtitle"] = report::subtitle(input);
  parts["body"] = report::headline(input) + report::metric_table(input) +
                  report::baseline_table(input) + report::folds_card(input) +
                  report::adaptation(input) + report::curves(input) + report::result_tables(input) +
                  report::model_parts(input) + report::data_section(input) +
                  report::background(input);
  parts["data"] = html::script_json(report::chart_data(input));
  return report::page(std::move(parts));
}

}  // namespace treadle
