#include <treadle/engine/stage_graph.h>

#include <algorithm>
#include <exception>
#include <map>
#include <queue>
#include <set>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/task_arena.h>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/depth_first_search.hpp>

#include <treadle/base/error.h>
#include <treadle/base/quoted_text.h>

#include "isolated.h"

namespace treadle::engine {
namespace flow = oneapi::tbb::flow;
namespace {

struct Stage {
  std::string name;
  std::string label;
  std::vector<std::string> after;
  StageGraph::Work work;
};

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;

/// Keeps the way from the root to the current vertex, so that a back edge can be told as a
/// path.
class CycleFinder : public boost::default_dfs_visitor {
 public:
  CycleFinder(const std::vector<Stage>& stages, std::vector<std::size_t>& path,
              std::vector<std::string>& cycles)
      : stages_(stages), path_(path), cycles_(cycles) {}

  void discover_vertex(std::size_t vertex, const Graph&) { path_.push_back(vertex); }
  void finish_vertex(std::size_t, const Graph&) { path_.pop_back(); }
  void back_edge(const Graph::edge_descriptor& edge, const Graph& graph) {
    const auto begin = std::find(path_.begin(), path_.end(), boost::target(edge, graph));
    std::string text;
    for (auto at = begin; at != path_.end(); ++at)
      text += stages_[*at].name + " -> ";
    cycles_.push_back("cycle: " + text + stages_[*begin].name);
  }

 private:
  const std::vector<Stage>& stages_;
  std::vector<std::size_t>& path_;
  std::vector<std::string>& cycles_;
};

}  // namespace

struct StageGraph::Impl {
  std::vector<Stage> stages;

  std::map<std::string, std::size_t> index() const {
    std::map<std::string, std::size_t> result;
    for (std::size_t i = 0; i < stages.size(); ++i)
      result.emplace(stages[i].name, i);
    return result;
  }

  /// Edges from each stage to those that wait for it.
  std::vector<std::vector<std::size_t>> successors() const {
    const auto at = index();
    std::vector<std::vector<std::size_t>> result(stages.size());
    for (std::size_t i = 0; i < stages.size(); ++i) {
      for (const std::string& before : stages[i].after)
        result[at.at(before)].push_back(i);
    }
    return result;
  }
};

StageGraph::StageGraph() : impl_(std::make_unique<Impl>()) {}
StageGraph::~StageGraph() = default;
StageGraph::StageGraph(StageGraph&&) noexcept = default;

void StageGraph::add(std::string name, std::vector<std::string> after, Work work,
                     std::string label) {
  if (label.empty())
    label = name;
  impl_->stages.push_back({std::move(name), std::move(label), std::move(after), std::move(work)});
}

void StageGraph::check() const {
  const auto& stages = impl_->stages;
  const auto at = impl_->index();
  std::vector<std::string> mistakes;
  std::set<std::string> seen;
  Graph graph(stages.size());
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (!seen.insert(stages[i].name).second) {
      mistakes.push_back("two stages are called \"" + stages[i].name + "\"");
    }
    for (const std::string& before : stages[i].after) {
      const auto found = at.find(before);
      if (found == at.end()) {
        mistakes.push_back("stage \"" + stages[i].name + "\" waits for \"" + before +
                           "\", which does not exist");
      } else {
        boost::add_edge(found->second, i, graph);
      }
    }
  }
  std::vector<std::size_t> path;
  boost::depth_first_search(graph, boost::visitor(CycleFinder(stages, path, mistakes)));
  if (mistakes.empty())
    return;
  std::string text;
  for (const std::string& mistake : mistakes)
    text += (text.empty() ? "" : "; ") + mistake;
  throw ContractViolation("the stage graph cannot run: " + text);
}

std::vector<std::string> StageGraph::order() const {
  check();
  const auto next = impl_->successors();
  std::vector<std::size_t> waiting(next.size(), 0);
  for (const auto& edges : next) {
    for (const std::size_t to : edges)
      ++waiting[to];
  }
  // Kahn's algorithm, smallest index first: the order of independent stages is no accident.
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> free;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    if (waiting[i] == 0)
      free.push(i);
  }
  std::vector<std::string> names;
  while (!free.empty()) {
    const std::size_t stage = free.top();
    free.pop();
    names.push_back(impl_->stages[stage].name);
    for (const std::size_t to : next[stage]) {
      if (--waiting[to] == 0)
        free.push(to);
    }
  }
  return names;
}

void StageGraph::run(std::stop_token stop) const {
  const std::vector<std::string> names = order();
  const auto& stages = impl_->stages;
  const auto at = impl_->index();
  enum class State { kSkipped, kDone };
  std::vector<State> states(stages.size(), State::kSkipped);
  std::vector<std::exception_ptr> failures(stages.size());

  // Bodies never let an exception out: a flow graph keeps only the first, and leaves messages
  // behind.
  flow::graph graph;
  std::vector<std::unique_ptr<flow::continue_node<flow::continue_msg>>> nodes;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    nodes.push_back(std::make_unique<flow::continue_node<flow::continue_msg>>(
        graph, [&, i](const flow::continue_msg&) {
          const auto ready = [&](const std::string& name) {
            return states[at.at(name)] == State::kDone;
          };
          if (stop.stop_requested() ||
              !std::all_of(stages[i].after.begin(), stages[i].after.end(), ready)) {
            return flow::continue_msg();
          }
          // A stage that waits for its own tasks must not be given another stage meanwhile.
          isolated([&] {
            try {
              stages[i].work(stop);
              states[i] = State::kDone;
            } catch (...) {
              failures[i] = std::current_exception();
            }
          });
          return flow::continue_msg();
        }));
  }
  const auto next = impl_->successors();
  for (std::size_t from = 0; from < next.size(); ++from) {
    for (const std::size_t to : next[from])
      flow::make_edge(*nodes[from], *nodes[to]);
  }
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (stages[i].after.empty())
      nodes[i]->try_put(flow::continue_msg());
  }
  graph.wait_for_all();
  for (const std::string& name : names) {
    if (const std::exception_ptr& failure = failures[at.at(name)])
      std::rethrow_exception(failure);
  }
}

std::string StageGraph::dot(const std::string& title) const {
  check();
  std::string text =
      "digraph " + dot_quoted(title) + " {\n  rankdir=LR;\n  node [shape=box, style=rounded];\n";
  for (const Stage& stage : impl_->stages) {
    text += "  " + dot_quoted(stage.name) + " [label=" + dot_quoted(stage.label) + "];\n";
  }
  for (const Stage& stage : impl_->stages) {
    for (const std::string& before : stage.after) {
      text += "  " + dot_quoted(before) + " -> " + dot_quoted(stage.name) + ";\n";
    }
  }
  return text + "}\n";
}

}  // namespace treadle::engine
