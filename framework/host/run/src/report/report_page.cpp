#include "report/report_page.h"

#include <treadle/embedded/chart_js.h>
#include <treadle/embedded/report_css.h>
#include <treadle/embedded/report_html.h>
#include <treadle/embedded/report_js.h>
#include <treadle/embedded/report_search_js.h>

#include <string_view>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>

namespace treadle::report {
namespace {

/// Puts the parts where the page says {{name}}. What a part contains is not looked at again, so a
/// run called "{{script}}" is only a name.
std::string fill(std::string_view page, const PageParts& parts) {
  std::string text;
  for (std::size_t open = page.find("{{"); open != std::string_view::npos; open = page.find("{{")) {
    const std::size_t close = page.find("}}", open);
    TREADLE_EXPECTS(close != std::string_view::npos, "the report's page has an open \"{{\"");
    text += page.substr(0, open);
    const auto part = parts.find(page.substr(open + 2, close - open - 2));
    TREADLE_EXPECTS(part != parts.end(), "the report's page names a part that is not there");
    text += part->second;
    page.remove_prefix(close + 2);
  }
  return text += page;
}

/// Chart.js ends in the address of its source map, which developer tools would fetch.
std::string without_source_map(std::string_view script) {
  const std::size_t comment = script.rfind("//# sourceMappingURL=");
  if (comment == std::string_view::npos)
    return std::string(script);
  const std::size_t end = script.find('\n', comment);
  std::string text(script.substr(0, comment));
  if (end != std::string_view::npos)
    text += script.substr(end);
  return text;
}

}  // namespace

std::string page(PageParts parts) {
  parts["style"] = embedded::report_css();
  parts["chart"] = without_source_map(embedded::chart_js());
  parts["script"] = embedded::report_js();
  parts["search_script"] = embedded::report_search_js();
  // Only scripts and styles with this word run. It depends on everything that came from outside, so
  // nothing from outside can contain it.
  parts["nonce"] = hash_text(parts["name"] + parts["body"] + parts["data"]);
  return fill(embedded::report_html(), parts);
}

}  // namespace treadle::report
