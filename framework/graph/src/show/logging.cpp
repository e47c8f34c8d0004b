#include <treadle/graph/logging.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include <treadle/graph/graph.h>

#include "run/graph_data.h"

namespace treadle::graph {
namespace {

/// Groups expanded; without any, the tags that have a value.
std::vector<std::string> meant_tags(const GraphState& state, const std::vector<std::string>& tags) {
  const Graph& graph = state.graph();
  std::vector<std::string> all;
  if (tags.empty()) {
    for (const std::string& tag : graph.tags()) {
      if (state.tagged(tag).defined())
        all.push_back(tag);
    }
    return all;
  }
  for (const std::string& tag : tags) {
    const std::vector<std::string> group = graph.tag_group(tag);
    if (group.empty())
      all.push_back(tag);
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

}  // namespace

void collect(TrendRecorder& recorder, const GraphState& state, const std::vector<std::string>& tags,
             std::optional<Reduction> reduction) {
  for (const std::string& tag : meant_tags(state, tags))
    recorder.collect(tag, state.tagged(tag), reduction);
}

void collect_timings(TrendRecorder& timings, const GraphState& state,
                     const std::vector<std::string>& tags) {
  for (const std::string& tag : meant_tags(state, tags.empty() ? state.graph().tags() : tags)) {
    state.tagged(tag);  // refuses one that is unknown
    const std::chrono::duration<double> time = state.timing(tag);
    if (time.count() > 0)
      timings.record(tag, time.count());
  }
}

std::string values_text(const GraphState& state, const std::vector<std::string>& tags) {
  std::vector<std::string> names = meant_tags(state, tags);
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& tag : names) {
    const at::Tensor& value = state.tagged(tag);
    if (!value.defined() || value.numel() == 0)
      continue;
    char number[32];
    std::snprintf(number, sizeof number, "%.6g",
                  value.detach().flatten()[0].to(at::kDouble).item<double>());
    text += (text.empty() ? "" : " | ") + tag + ": " + number;
  }
  return text;
}

void log(GraphState& state, const std::vector<std::string>& tags) {
  const std::string text = values_text(state, tags);
  if (state.data().on_log) {
    state.data().on_log(text);
  } else {
    std::fputs((text + "\n").c_str(), stderr);
  }
}

}  // namespace treadle::graph
