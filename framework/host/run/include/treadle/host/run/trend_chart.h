#pragma once

#include <filesystem>
#include <string>

#include <treadle/core/history/trend_recorder.h>

namespace treadle {

/// The trends of a recorder as a line chart, a colour for each tag, with a legend and the values
/// under the pointer: one self-contained HTML file like a run's report. The name of a group stands
/// for its tags, no tags for all. Throws a UsageError when there is nothing to draw.
std::string render_trends(const std::string& title, const TrendRecorder& recorder,
                          const TrendRecorder::Tags& tags = {});
void write_trend_chart(const std::filesystem::path& path, const std::string& title,
                       const TrendRecorder& recorder, const TrendRecorder::Tags& tags = {});

}  // namespace treadle
