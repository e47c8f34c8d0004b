#pragma once

#include <functional>
#include <map>
#include <string>

/// The page that reports and charts stand on: one HTML file that loads nothing from anywhere.
namespace treadle::report {

/// "name", "kind", "version", "subtitle" and "body" are HTML, "data" is what report.js draws.
using PageParts = std::map<std::string, std::string, std::less<>>;

/// The page with these parts, with style, Chart.js and script.
std::string page(PageParts parts);

}  // namespace treadle::report
