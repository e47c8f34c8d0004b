#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/model/layer.h>
#include <treadle/graph/control_flow.h>
#include <treadle/graph/part.h>

namespace treadle::graph {

class Graph;
struct FlowStep;

/// The value of a state before its first write.
struct InitialState {
  std::string tag;
  std::vector<std::int64_t> shape;  ///< of one row
  double fill = 0;
};

/// Defines a network as data flow, one verb after the other:
///
///     auto net = FlowBuilder::from(torch::nn::Linear(4, 16)).through(relu()).tag("encoded")
///                    .split({left, right}).merge(mean())
///                    .loop(refine).times(3).using_({"encoded"})
///                    .through(torch::nn::Linear(16, 1)).build();
///
/// There is one open stream of tensors, or several between split() and merge(). A verb only records
/// a step; build() checks all steps and reports every mistake at once. The same steps in a
/// document: docs/guide/model-graphs.md. Copies are independent; the parts in them are not copied.
class FlowBuilder {
 public:
  /// A flow whose stream is the first input of the graph.
  FlowBuilder();
  static FlowBuilder from(const Part& part);

  FlowBuilder(const FlowBuilder&);
  FlowBuilder(FlowBuilder&&) noexcept;
  FlowBuilder& operator=(const FlowBuilder&);
  FlowBuilder& operator=(FlowBuilder&&) noexcept;
  ~FlowBuilder();

  /// stream = part(stream)
  FlowBuilder& through(const Part& part);
  /// stream = stream + part(stream), which have the same sizes; with `broadcast`, sizes that
  /// broadcast.
  FlowBuilder& residual(const Part& part, bool broadcast = false);
  /// Opens a stream for each branch (two at least); all of them start from the one there was.
  FlowBuilder& split(std::vector<Part> branches);
  /// One stream again: part(branch 0, branch 1, …)
  FlowBuilder& merge(const Part& part);

  /// Names the output of the last step, for using_(), at(), outputs() and messages. A value may
  /// have several tags.
  FlowBuilder& tag(std::string name);
  /// Names a further output of the last step's part: one of a layer that NamesOutputs, or of a flow
  /// with several outputs, whose tag in it is its name.
  FlowBuilder& tag_output(std::string output, std::string name);
  /// Names the open streams `name_0`, `name_1`, …
  FlowBuilder& tag_group(std::string name);
  /// Further inputs of the graph, in this order after the first; each is a tag.
  FlowBuilder& input(std::vector<std::string> names);
  /// Gives tagged values to the last step as further inputs: to each branch after split(), to the
  /// router after mixture_of_experts() and switch_(), to the body after loop() and map(). A tag
  /// that comes later in the flow is a state: what was there in the forward before.
  FlowBuilder& using_(std::vector<std::string> tags);
  /// The value of a state before the first forward: `shape` per row, all `fill`. Without it a state
  /// is absent at first.
  FlowBuilder& initial(std::string tag, std::vector<std::int64_t> shape, double fill = 0);
  /// Goes on from tagged values instead of the open streams: one, or several for merge().
  FlowBuilder& at(std::vector<std::string> tags);

  /// Σ_i w_i · expert_i(stream), w = router(stream): [..., number of experts], used as they are.
  FlowBuilder& mixture_of_experts(const Part& router, std::vector<Part> experts,
                                  Mixture mixture = {});
  /// branch_i(stream) with i = router(stream), an integer. Only what is chosen runs. What the
  /// choice depends on gets no gradient through it.
  FlowBuilder& switch_(const Part& router, std::vector<Part> branches,
                       SwitchBy by = SwitchBy::kBatch);

  class Loop;
  /// state = body(state), again and again, from the stream on.
  Loop loop(const Part& body);

  class Map;
  /// body on each piece of a tensor; the results are joined along the first dimension.
  Map map(const Part& body);

  /// Calls the node of the last step so, instead of `dense_0`; its parameters are then
  /// `name.weight` ….
  FlowBuilder& named(std::string name);
  /// The last step's parameters are not trained.
  FlowBuilder& frozen();
  /// The last step, of one stream, is left out: the stream passes it by, and its tag names the
  /// stream. Its node stays, as an identity, so that the ids of others do not depend on it.
  FlowBuilder& disabled();
  /// The tagged values are what the graph gives, in this order, instead of the stream.
  FlowBuilder& outputs(std::vector<std::string> tags);
  /// The same for a model: `names` are those of the outputs that the loss requires, one for each
  /// tag. build_model() brings them into its order.
  FlowBuilder& outputs(std::vector<std::string> names, std::vector<std::string> tags);
  /// Inputs that stand before every other step.
  FlowBuilder& begin_with_inputs(std::vector<std::string> names);

  /// The graph. `spec.inputs` are the graph's inputs; without them the graph is not checked for
  /// sizes, and every part must be a module that is there already. Throws a DocumentError with
  /// every mistake.
  std::shared_ptr<Graph> build(const LayerSpec& spec) const;
  std::shared_ptr<Graph> build() const;

  /// Where the flow was read from, and the next steps, so that mistakes name the place.
  FlowBuilder& read_from(const Config& flow);
  FlowBuilder& written_at(const Config& step);

  /// The recorded steps, in order.
  const std::vector<FlowStep>& steps() const { return steps_; }
  const std::vector<InitialState>& initial_states() const { return initial_; }
  const std::vector<std::string>& output_tags() const { return outputs_; }
  /// As output_tags(); empty where outputs have no names.
  const std::vector<std::string>& output_names() const { return output_names_; }
  const Config& place() const { return place_; }

 private:
  FlowStep& add(FlowStep step);
  FlowStep& last();

  std::vector<FlowStep> steps_;
  std::vector<InitialState> initial_;
  std::vector<std::string> outputs_;
  std::vector<std::string> output_names_;
  Config place_;
  Config place_of_step_;
};

/// The result of loop(), which needs a number of rounds or a condition.
class FlowBuilder::Loop {
 public:
  /// n rounds, n >= 1.
  FlowBuilder& times(std::int64_t n);
  /// Rounds until condition(state) > 0, evaluated before each; at most `most` of them.
  FlowBuilder& while_(const Part& condition, std::int64_t most, HaltBy by = HaltBy::kOneElement);
  /// Rounds until condition(state) > 0, evaluated after each; at most `most` of them.
  FlowBuilder& until(const Part& condition, std::int64_t most, HaltBy by = HaltBy::kOneElement);
  /// Adaptive computation time (Graves 2016): each row ponders for a learned number of rounds, at
  /// most `most`. After each round sigmoid(halt(state)), one number per row, is the probability
  /// that the row halts there; it halts once they come to 1 - epsilon, the last one being what
  /// remains to 1. The loop gives Σ_n p_n · state_n, row by row. A row that has halted keeps its
  /// state.
  ///
  /// The ponder cost is not part of the reported loss: the loop's backward adds its gradient, as if
  /// `cost` · Σ_rows (rounds + remainder) were added to the loss's sum. So it works in every
  /// training without further code. GraphState::pondered() returns the rounds of each row.
  FlowBuilder& adaptively(const Part& halt, std::int64_t most, Pondering pondering = {});

 private:
  friend class FlowBuilder;
  explicit Loop(FlowBuilder& flow) : flow_(flow) {}
  FlowBuilder& flow_;
};

/// The result of map(), which needs the slices.
class FlowBuilder::Map {
 public:
  /// Rows of the stream, as [1, …] each.
  FlowBuilder& each();
  /// Rows of a tagged value.
  FlowBuilder& over(std::string tag);
  /// n pieces of the last dimension: [B, D] as B·n rows [1, D / n], and back to [B, n · width].
  FlowBuilder& slices(std::int64_t n);
  /// All pieces in one call, as rows: faster; another result where the body looks beyond a row
  /// (batch norm).
  Map& batched();

 private:
  friend class FlowBuilder;
  explicit Map(FlowBuilder& flow) : flow_(flow) {}
  FlowBuilder& flow_;
};

/// A verb of documents: a second interface of a LayerFactory that adds more to a flow than one
/// node. Queried by Component::ask.
class FlowVerb {
 public:
  static constexpr std::string_view kInterface = "treadle.flow-verb/0";

  virtual ~FlowVerb();
  virtual void add_to(FlowBuilder& flow) const = 0;
};

}  // namespace treadle::graph
