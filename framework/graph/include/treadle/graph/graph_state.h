#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <treadle/core/components/state_dict.h>
#include <treadle/graph/profile.h>

namespace treadle {
class DeviceBackend;
}

namespace treadle::graph {

class Graph;

/// Receives the value of a node: GraphState::on_each_node().
using NodeHook = std::function<void(const std::string& node, const at::Tensor& value)>;

/// Receives the times of a forward: GraphState::on_profile().
using ProfileHook = std::function<void(const Profile& profile)>;
/// Receives values as text: GraphState::on_log().
using LogHook = std::function<void(const std::string& text)>;

/// Everything that one stream of forwards through a graph leaves behind: states, tagged values,
/// traces, and what layers carry. A graph can be run with several of them at the same time; one of
/// them belongs to one forward at a time.
///
/// state() holds what the next forward needs (its own and that of its layers), not tags and traces.
class GraphState final : public Stateful {
 public:
  /// The graph must outlive it.
  explicit GraphState(const Graph& graph);
  ~GraphState() override;
  GraphState(GraphState&&) noexcept;
  GraphState& operator=(GraphState&&) noexcept;

  const Graph& graph() const;

  /// The output of a tagged step in the last forward, with gradients attached; undefined before.
  /// Throws a UsageError for a tag that the graph does not have.
  const at::Tensor& tagged(std::string_view tag) const;

  /// Of the loop with this tag in the last forward: before the first round and after each, what its
  /// body, being Traced, had to show.
  const std::vector<at::Tensor>& traces(std::string_view tag) const;

  /// Of the loop with this tag in the last forward, where rows halt by themselves: what each
  /// pondered, rounds + remainder; [rows], without gradients. Undefined for other nodes.
  const at::Tensor& pondered(std::string_view tag) const;

  /// The state of the graph within a graph that has this tag; null when there is none.
  GraphState* sub(std::string_view tag);

  /// Calls `hook` with the value of each node of the next forwards, as soon as it is there: of
  /// graphs within, too, and of a loop in every round. `node` is what names of parameters begin
  /// with: "dense_0", "encoder.dense_1", "loop_0.body.dense_0". The value is the one that other
  /// nodes get: Tensor::register_hook() on it receives its gradient. Such forwards run node by
  /// node, branches one after the other. The parts that a layer runs by itself (`recompute`) are
  /// left out. An empty hook ends it. An exception of the hook fails the forward.
  void on_each_node(NodeHook hook);

  /// Whether the next forwards are timed, node by node, graphs within included; ending it drops
  /// the times. With the backend of the device that the graph is on, times are those of the
  /// device's clock; it outlives the state.
  void profile(bool on, const DeviceBackend* backend = nullptr);
  /// Of the last forward; null where none was timed. Waits for the device whose clock is used.
  const Profile* last_profile() const;
  /// Calls `hook` after each forward that is timed, which then waits for the device whose clock is
  /// used. An empty one ends it.
  void on_profile(ProfileHook hook);
  /// Receives the text of treadle::graph::log() in place of the standard error stream. An empty one
  /// ends it.
  void on_log(LogHook hook);

  /// Of the node with this tag in the last forward that was timed; 0 where there is none.
  std::chrono::nanoseconds timing(std::string_view tag) const;

  /// Clears all state: the next forward is the first.
  void reset();
  /// Detaches all state from its gradients: back-propagation through time ends here.
  void detach();
  void to(c10::Device device);
  /// Whether the next forward needs anything of this one.
  bool keeps_state() const;

  struct Data;
  Data& data() { return *data_; }

 private:
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  std::unique_ptr<Data> data_;
};

}  // namespace treadle::graph
