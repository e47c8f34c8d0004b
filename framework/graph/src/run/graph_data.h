#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <treadle/core/devices/device_backend.h>
#include <treadle/graph/graph.h>
#include <treadle/graph/graph_state.h>
#include <treadle/graph/profile.h>

#include "run/branches.h"
#include "run/executor.h"
#include "run/node.h"
#include "run/trunk.h"

/// The data of a graph and of its states. Graph::Impl is made by assemble.cpp and read-only from
/// then on, except for settings between forwards (branches, executor, logged), the trunk and the
/// pool of states; what a forward writes is in GraphState::Data. Nested graphs are owned by the
/// callees of their nodes, and their states by the callees' states.
namespace treadle::graph {

/// A node at its place in the execution order. Everything is addressed by place: values, states of
/// nodes, times.
struct Place {
  /// Null for inputs, states and further outputs of nodes, whose values are given.
  std::shared_ptr<const Node> node;
  std::vector<std::size_t> inputs;  ///< places whose values it takes
  /// As inputs: whether the value has other users. Then it passes an accumulation point.
  std::vector<bool> is_shared;
  std::vector<std::size_t> further;  ///< the places of its outputs after the first
  /// Places whose values are freed after this one.
  std::vector<std::size_t> done;
  std::optional<std::size_t> tag_slot;  ///< where its value is kept for people
  std::optional<std::size_t> group;     ///< the group of branches that it belongs to
};

/// A state: the value of one place, read by another in the next forward.
struct StateSlot {
  std::string tag;
  std::size_t read = 0;             ///< the place that yields it
  std::size_t written = 0;          ///< the place that computes it
  std::vector<std::int64_t> shape;  ///< of a row, where an initial value was declared
  double fill = 0;
  bool has_initial = false;
  bool has_rows = false;  ///< its first dimension is the batch
};

/// The nodes of a graph and how they are wired. A copy shares the modules.
struct GraphStructure {
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
  /// Itself, or a graph within that a plan would lower; the graphs in layers run by themselves.
  bool has_branches = false;
  bool keeps_state = false;  ///< stateful: it has states, or something within it is stateful
  bool reports = false;      ///< something within logs or adds to the loss
  bool adds_losses = false;
  std::vector<std::vector<at::Tensor>> parameters;  // of places that are branches
  Branches branches = Branches::kSequential;
  std::vector<std::size_t> tells_beginning;  // places with a callee that is a BeginsForward
  // As a model: what the one output is split into (empty: it is not), and which of the model's
  // inputs each of the graph's is (empty: the same order).
  std::vector<std::int64_t> output_widths;
  std::vector<std::size_t> input_order;
  bool is_model = false;
  struct LoggedValue {
    std::string name;
    std::size_t tag_slot = 0;
    std::optional<Reduction> by;
    std::vector<std::size_t> within;  ///< places of the graphs around it, from the outside in
  };
  std::vector<LoggedValue> logged;  // as a model: reported where the context asks for values
  /// Of parameters; nothing for a graph that was built without sizes.
  std::optional<c10::ScalarType> dtype;
  std::shared_ptr<const FlowBuilder> built_from;  ///< by a graph builder; null for others
};

struct Graph::Impl : GraphStructure {
  Impl() = default;
  explicit Impl(GraphStructure structure) : GraphStructure(std::move(structure)) {}

  std::unique_ptr<Executor> executor;
  std::string execution_choice;   ///< of Execution::kAuto; empty: it was not asked
  bool is_for_inference = false;  ///< see Graph::prepare_for_inference()
  /// As a model, for outputs that are deferred: made by the first that is, and again after settings
  /// that it copies.
  std::mutex trunk_mutex;
  std::optional<Trunk> trunk;

  // States for forwards that bring none (SpareState); each is used by one forward at a time.
  mutable std::mutex spare_mutex;
  mutable std::vector<std::unique_ptr<GraphState>> spare;
};

/// When a device came to the places of a forward, by its own clock: marks that are read once they
/// are asked for. Places of graphs within have their own.
class DeviceTimes {
 public:
  using Clock = std::chrono::steady_clock;
  using Times = std::vector<std::pair<Clock::time_point, Clock::time_point>>;

  /// Null: the host's clock is used.
  void use(const DeviceBackend* backend) {
    backend_ = backend;
    marks_.clear();
  }
  /// Before a forward of so many places on `device`.
  void begin(c10::Device device, std::size_t places);
  bool are_taken() const { return !marks_.empty(); }
  // Around a place, which may have several parts.
  void begin_place(std::size_t place);
  void end_place(std::size_t place);
  /// Waits for the device. Places that have not run keep the time they have.
  void read(Times& times) const;

 private:
  struct Marks {
    std::unique_ptr<DeviceMark> begin;
    std::unique_ptr<DeviceMark> end;
    bool has_begun = false;
    bool has_ended = false;
  };

  const DeviceBackend* backend_ = nullptr;
  c10::Device device_ = c10::kCPU;
  std::vector<Marks> marks_;  // as places; empty: the host's clock is used
};

struct GraphState::Data {
  using Clock = std::chrono::steady_clock;

  const Graph* graph = nullptr;
  std::vector<at::Tensor> values;  // of places, during a forward
  std::vector<at::Tensor> states;  // as Graph::Impl::states; undefined: absent
  std::vector<at::Tensor> tags;    // as tag slots
  std::vector<NodeState> nodes;    // as places
  bool keeps_tags = true;
  bool takes_losses = false;  ///< of layers, see reports.h
  NodeHook hook;              ///< see on_each_node(); empty: none
  /// When each place began and ended; empty where nothing is timed.
  std::vector<std::pair<Clock::time_point, Clock::time_point>> times;
  std::optional<Profile> profile;
  ProfileHook on_profile;    ///< empty: none
  LogHook on_log;            ///< empty: the standard error stream
  DeviceTimes device_times;  ///< of the last forward, in place of `times`
};

/// Cuts the gradients of all tensors that a layer carries.
void detach_memory(StateDict& memory);

}  // namespace treadle::graph
