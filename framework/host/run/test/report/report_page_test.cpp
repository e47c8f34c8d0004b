// The page around a report's document: that it loads nothing, and runs nothing that it did not
// bring.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/host/run/report.h>

#include "report_reading.h"

namespace treadle {
namespace {

using reading::WrittenInput;

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

WrittenInput named(const std::string& name) {
  WrittenInput input;
  input.name = name;
  input.result = Json{{"choices", {name}}};
  return input;
}

std::string without_scripts(std::string page) {
  for (std::size_t at = page.find("<script"); at != std::string::npos; at = page.find("<script"))
    page.erase(at, page.find("</script>", at) + 9 - at);
  return page;
}

/// The document in a page, as its script reads it.
Json document_in(const std::string& page) {
  const std::size_t begin = page.find('>', page.find("id=\"report-document\"")) + 1;
  return Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

TEST(ReportPage, LoadsNothingFromAnywhere) {
  const std::string page = render_report(named("iris").input());

  EXPECT_THAT(page, HasSubstr("Content-Security-Policy\" content=\"default-src 'none'"));
  EXPECT_THAT(page, Not(HasSubstr("sourceMappingURL")));
  for (const char* word : {"src=\"http", "href=\"http", "src='http", "url(http", "@import"})
    EXPECT_THAT(without_scripts(page), Not(HasSubstr(word)));
}

TEST(ReportPage, CarriesChartJs) {
  EXPECT_THAT(render_report(named("iris").input()), HasSubstr("Chart.js v"));
}

TEST(ReportPage, LeavesNoPlaceholderOpen) {
  EXPECT_THAT(without_scripts(render_report(named("iris").input())), Not(HasSubstr("{{")));
}

TEST(ReportPage, HasTheDocumentInIt) {
  EXPECT_EQ(document_in(render_report(named("iris").input())),
            report_document(named("iris").input()));
}

TEST(ReportPage, TakesForeignNamesForDataOnly) {
  const std::string evil = "</script><script>alert(1)</script><!--\"'&{{scripts}}";

  const std::string page = render_report(named(evil).input());

  EXPECT_THAT(page, Not(HasSubstr("alert(1)</script>")));
  EXPECT_EQ(document_in(page)["title"], evil);
}

TEST(ReportPage, ReplacesBytesThatAreNotText) {
  const Json document = document_in(render_report(named("caf\xE9 \xC0\xAF ok").input()));

  EXPECT_EQ(document["title"], "caf\uFFFD \uFFFD\uFFFD ok");
}

TEST(ReportPage, RunsNoScriptThatItDidNotBring) {
  const auto nonce_of = [](const std::string& page) {
    const std::size_t begin = page.find("script-src 'nonce-") + 18;
    return page.substr(begin, page.find('\'', begin) - begin);
  };

  const std::string page = render_report(named("iris").input());

  EXPECT_GE(nonce_of(page).size(), 32U);
  EXPECT_NE(nonce_of(page), nonce_of(render_report(named("other").input())));
  EXPECT_THAT(page, Not(HasSubstr("unsafe-inline")));
  EXPECT_THAT(without_scripts(page), Not(HasSubstr(" style=")));
}

TEST(ReportPage, MakesElementsOfTextAlone) {
  const std::string page = render_report(named("iris").input());
  const std::string scripts = page.substr(page.find("id=\"report-document\""));
  const std::string own = scripts.substr(scripts.rfind("<script"));

  for (const char* word : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write"})
    EXPECT_THAT(own, Not(HasSubstr(word)));
}

TEST(ReportPage, NamesTheFilesWithTheNumbersWhereScriptsDoNotRun) {
  EXPECT_THAT(render_report(named("iris").input()),
              testing::ContainsRegex("<noscript>.*result\\.json and history\\.csv.*</noscript>"));
}

}  // namespace
}  // namespace treadle
