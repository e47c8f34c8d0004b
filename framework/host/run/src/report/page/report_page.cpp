#include "report/page/report_page.h"

#include <treadle/embedded/chart_js.h>
#include <treadle/embedded/report_blocks_js.h>
#include <treadle/embedded/report_charts_js.h>
#include <treadle/embedded/report_css.h>
#include <treadle/embedded/report_html.h>
#include <treadle/embedded/report_page_js.h>
#include <treadle/embedded/report_parallel_js.h>
#include <treadle/embedded/report_records_js.h>
#include <treadle/embedded/report_search_js.h>
#include <treadle/embedded/report_theme_js.h>
#include <treadle/embedded/report_values_js.h>

#include <functional>
#include <map>
#include <string_view>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>

namespace treadle::report {
namespace {

using Parts = std::map<std::string, std::string, std::less<>>;

/// Puts the parts where the page has {{name}}. The parts themselves are not searched.
std::string fill(std::string_view page, const Parts& parts) {
  std::string text;
  for (std::size_t open = page.find("{{"); open != std::string_view::npos; open = page.find("{{")) {
    const std::size_t close = page.find("}}", open);
    TREADLE_EXPECTS(close != std::string_view::npos, "the report's page has an open \"{{\"");
    const auto part = parts.find(page.substr(open + 2, close - open - 2));
    TREADLE_EXPECTS(part != parts.end(), "the report's page names a part that does not exist");
    text += page.substr(0, open);
    text += part->second;
    page.remove_prefix(close + 2);
  }
  return text += page;
}

/// JSON inside <script>: without "<", neither "</script" nor "<!--" can occur.
std::string script_json(const nlohmann::json& value) {
  std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at))
    text.replace(at, 1, "\\u003c");
  return text;
}

}  // namespace

std::string page(const nlohmann::json& document) {
  Parts parts;
  parts["style"] = embedded::report_css();
  // Chart.js ends in the address of its source map, which developer tools would fetch.
  const std::string_view chart = embedded::chart_js();
  parts["chart"] = chart.substr(0, chart.rfind("//# sourceMappingURL="));
  for (const std::string_view script :
       {embedded::report_values_js(), embedded::report_theme_js(), embedded::report_blocks_js(),
        embedded::report_charts_js(), embedded::report_records_js(), embedded::report_search_js(),
        embedded::report_parallel_js(), embedded::report_page_js()})
    parts["scripts"] += script;
  parts["document"] = script_json(document);
  // Only scripts and styles with this word run. It depends on everything that came from outside, so
  // nothing from outside can contain it.
  parts["nonce"] = hash_text(parts["document"]);
  return fill(embedded::report_html(), parts);
}

}  // namespace treadle::report
