#include <treadle/host/run/trend_chart.h>

#include <nlohmann/json.hpp>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>
#include <treadle/base/version.h>

#include "report/blocks.h"
#include "report/page/report_page.h"

namespace treadle {

std::string render_trends(const std::string& title, const TrendRecorder& recorder,
                          const TrendRecorder::Tags& tags) {
  report::List lines;
  for (const std::string& tag : recorder.expanded(tags)) {
    nlohmann::json points = nlohmann::json::array();
    const Trend trend = recorder.trend(tag);
    for (const double value : trend.values())
      points.push_back({points.size() + 1, value});
    if (!points.empty())
      lines.push_back({{"label", tag}, {"points", std::move(points)}});
  }
  if (lines.empty())
    throw UsageError("there is no trend to draw: nothing was flushed under these tags");
  nlohmann::json drawn = report::chart("lines", {{"x", "epoch"}, {"lines", std::move(lines)}});
  return report::page({{"title", title},
                       {"kind", "trends"},
                       {"version", version()},
                       {"subtitle", nlohmann::json::array()},
                       {"blocks", report::List{report::card("Trends", {std::move(drawn)})}}});
}

void write_trend_chart(const std::filesystem::path& path, const std::string& title,
                       const TrendRecorder& recorder, const TrendRecorder::Tags& tags) {
  write_file_atomically(path, render_trends(title, recorder, tags));
}

}  // namespace treadle
