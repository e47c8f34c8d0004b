#include "flow/assembly/draft.h"

#include <new>
#include <utility>

#include <treadle/base/json_words.h>

#include "forward/failure.h"

namespace treadle::graph {
namespace {

/// "dense_1" (dense) cannot take [B, 4] from "dense_0": …
std::string cannot_take(const Graph::Impl& graph, std::size_t place) {
  const NodeInfo& info = graph.nodes[place];
  std::string given;
  for (const NodeInput& input : info.inputs) {
    const NodeInfo& producer = graph.nodes[input.node];
    given += (given.empty() ? "" : " and ") +
             (producer.result ? producer.result->text() : "what comes") + " from " +
             quote_text(producer.id);
  }
  return quote_text(info.id) + (info.type == info.id ? "" : " (" + info.type + ")") +
         " cannot take " + given + ": ";
}

}  // namespace

void Draft::complain(const FlowStep* step, std::string message) {
  problems.push_back(problem_of(flow, step, std::move(message)));
}

void Draft::complain_at(std::size_t place, std::string message) {
  complain(wanted(place).step, std::move(message));
}

bool Draft::attempt(std::size_t place, const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    complain_at(place, cannot_take(*graph, place) + words_in_flight());
    return false;
  }
}

std::optional<std::vector<TensorSpec>> Draft::specs_of_inputs(std::size_t place) const {
  std::vector<TensorSpec> specs;
  for (const NodeInput& input : graph->nodes[place].inputs) {
    const auto& result = graph->nodes[input.node].result;
    if (!result)
      return std::nullopt;
    specs.push_back(*result);
  }
  return specs;
}

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : between) + word;
  return text;
}

}  // namespace treadle::graph
