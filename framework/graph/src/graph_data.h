#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <treadle/graph/graph.h>
#include <treadle/graph/graph_state.h>
#include <treadle/graph/profile.h>

#include "branches.h"
#include "node.h"

namespace treadle::graph {

class PlanCache;

/// A node at its place in the order, with all that running it takes.
struct Place {
  std::shared_ptr<const Node> node;  ///< null for inputs and states, whose values are given
  std::vector<std::size_t> inputs;   ///< places whose values it takes
  /// As inputs: whether others use the value, too.
  std::vector<bool> is_shared;
  /// Places whose values nobody needs after this one.
  std::vector<std::size_t> done;
  std::optional<std::size_t> tag_slot;  ///< where its value is kept for people
  std::optional<std::size_t> group;     ///< the branches it is one of
};

/// A state: the value of one place, given to another in the next forward.
struct StateSlot {
  std::string tag;
  std::size_t read = 0;             ///< the place that gives it
  std::size_t written = 0;          ///< the place that makes it
  std::vector<std::int64_t> shape;  ///< of a row, where an initial value was declared
  double fill = 0;
  bool has_initial = false;
  bool has_rows = false;  ///< its first dimension is the batch
};

struct Graph::Impl {
  std::vector<NodeInfo> nodes;
  std::vector<Place> places;  // as nodes
  std::vector<std::size_t> inputs;
  std::vector<std::string> input_names;
  std::vector<std::size_t> outputs;
  std::vector<StateSlot> states;
  std::size_t levels = 1;  ///< of graphs within each other, this one included
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  std::map<std::string, std::size_t, std::less<>> tags;  // place
  std::size_t tag_slots = 0;
  std::vector<BranchGroup> groups_of_branches;
  bool has_branches = false;  ///< itself, or a graph within
  bool remembers = false;     ///< it has states, or something within remembers
  std::vector<std::vector<at::Tensor>> parameters;  // of places that are branches
  Branches branches = Branches::kAsItPays;
  Execution execution = Execution::kDynamic;
  std::shared_ptr<PlanCache> plans;  ///< where execution is compiled
  bool is_for_inference = false;
  std::vector<std::size_t> tells_beginning;  // places with a callee that BeginsForward
  // As a model: what one stream is cut into (empty: it is not), and which of the model's inputs
  // each of the graph's is (empty: they have one order).
  std::vector<std::int64_t> output_widths;
  std::vector<std::size_t> input_order;
  struct Observed {
    std::string name;
    std::size_t tag_slot = 0;
    std::optional<Reduction> by;
  };
  std::vector<Observed> observed;  // shown to whoever asks, as a model
  /// Of parameters; nothing for a graph that was built without sizes.
  std::optional<c10::ScalarType> dtype;

  // States for forwards that bring none; each is used by one forward at a time.
  mutable std::mutex spare_mutex;
  mutable std::vector<std::unique_ptr<GraphState>> spare;
};

struct GraphState::Data {
  using Clock = std::chrono::steady_clock;

  const Graph* graph = nullptr;
  std::vector<at::Tensor> values;  // of places, during a forward
  std::vector<at::Tensor> states;  // as Graph::Impl::states; undefined: absent
  std::vector<at::Tensor> tags;    // as tag slots
  std::vector<NodeState> nodes;    // as places
  bool keeps_tags = true;
  /// When each place began and ended; empty where nothing is timed.
  std::vector<std::pair<Clock::time_point, Clock::time_point>> times;
  std::optional<Profile> profile;
};

}  // namespace treadle::graph
