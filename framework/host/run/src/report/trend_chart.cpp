#include <treadle/host/run/trend_chart.h>

#include <cmath>

#include <nlohmann/json.hpp>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>
#include <treadle/base/version.h>

#include "report/report_html.h"
#include "report/report_page.h"

namespace treadle {

std::string render_trends(const std::string& title, const TrendRecorder& recorder,
                          const TrendRecorder::Tags& tags) {
  nlohmann::json trends = nlohmann::json::array();
  for (const std::string& tag : recorder.expanded(tags)) {
    const Trend trend = recorder.trend(tag);
    if (trend.empty())
      continue;
    nlohmann::json values = nlohmann::json::array();
    for (const double value : trend.values())
      values.push_back(std::isfinite(value) ? nlohmann::json(value) : nlohmann::json());
    trends.push_back({{"name", tag}, {"values", std::move(values)}});
  }
  if (trends.empty())
    throw UsageError("there is no trend to draw: nothing was flushed under these tags");
  report::PageParts parts;
  parts["name"] = html::escape(title);
  parts["kind"] = "trends";
  parts["version"] = html::escape(std::string(version()));
  parts["subtitle"] = "";
  parts["body"] = html::chart_card("Trends", "trends-chart", "",
                                   "This chart needs JavaScript; a CSV file has its numbers.");
  parts["data"] =
      html::script_json({{"curves", nlohmann::json::array()}, {"trends", std::move(trends)}});
  return report::page(std::move(parts));
}

void write_trend_chart(const std::filesystem::path& path, const std::string& title,
                       const TrendRecorder& recorder, const TrendRecorder::Tags& tags) {
  write_file_atomically(path, render_trends(title, recorder, tags));
}

}  // namespace treadle
