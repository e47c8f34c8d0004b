#pragma once

#include <optional>
#include <string>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/components/plugin_registry.h>
#include <treadle/core/model/layer.h>
#include <treadle/graph/flow_builder.h>
#include <treadle/graph/part.h>

/// The verbs of FlowBuilder as steps of a document. Each class reads what its schema lists, and
/// says it.
namespace treadle::model_graphs {

/// That knows the layers of what is made in this context.
const PluginRegistry& registry_of(const ComponentContext& context);

/// A verb stands for itself as a layer, too: for the graph of the one step.
class Verb : public LayerFactory, public graph::FlowVerb {
 private:
  std::shared_ptr<Layer> do_create(const LayerSpec& spec) const final;
  void* do_ask(std::string_view interface_id) final;
};

class Residual final : public Verb {
 public:
  Residual(const Config& config, const ComponentContext& context);
  void add_to(graph::FlowBuilder& flow) const override;

 private:
  graph::Part body_;
  bool broadcast_;
};

/// Not a verb, but a layer made of a flow: what is within runs again in backward.
class Recompute final : public LayerFactory {
 public:
  Recompute(const Config& config, const ComponentContext& context);

 private:
  std::shared_ptr<Layer> do_create(const LayerSpec& spec) const override;

  graph::Part body_;
};

class At final : public Verb {
 public:
  explicit At(const Config& config);
  void add_to(graph::FlowBuilder& flow) const override;

 private:
  std::vector<std::string> tags_;
};

/// A flow within a flow: one node, with a graph in it.
class Flow final : public Verb {
 public:
  Flow(const Config& config, const ComponentContext& context);
  void add_to(graph::FlowBuilder& flow) const override;

 private:
  graph::FlowBuilder flow_;
};

/// What a graph builder builds: one node, with a graph in it.
class Built final : public Verb {
 public:
  Built(const Config& config, const ComponentContext& context);
  void add_to(graph::FlowBuilder& flow) const override;

 private:
  graph::Part built_;
};

class MixtureOfExperts final : public Verb {
 public:
  MixtureOfExperts(const Config& config, const ComponentContext& context);
  void add_to(graph::FlowBuilder& flow) const override;

 private:
  graph::Part router_;
  std::vector<graph::Part> experts_;
  graph::Mixture mixture_;
};

class Input final : public Verb {
 public:
  explicit Input(const Config& config);
  void add_to(graph::FlowBuilder& flow) const override;

 private:
  std::vector<std::string> names_;
};

class Loop final : public Verb {
 public:
  Loop(const Config& config, const ComponentContext& context);
  void add_to(graph::FlowBuilder& flow) const override;

 private:
  graph::Part body_;
  std::optional<std::int64_t> times_;
  std::optional<graph::Part> while_;
  std::optional<graph::Part> until_;
  std::optional<graph::Part> adaptive_;
  std::int64_t at_most_ = 0;
  graph::HaltBy halt_by_;
  graph::Pondering pondering_;
};

class Map final : public Verb {
 public:
  Map(const Config& config, const ComponentContext& context);
  void add_to(graph::FlowBuilder& flow) const override;

 private:
  graph::Part body_;
  std::optional<std::string> over_;
  std::optional<std::int64_t> slices_;
  bool batched_;
};

class Merge final : public Verb {
 public:
  Merge(const Config& config, const ComponentContext& context);
  void add_to(graph::FlowBuilder& flow) const override;

 private:
  graph::Part with_;
};

class Split final : public Verb {
 public:
  Split(const Config& config, const ComponentContext& context);
  void add_to(graph::FlowBuilder& flow) const override;

 private:
  std::vector<graph::Part> branches_;
};

class Switch final : public Verb {
 public:
  Switch(const Config& config, const ComponentContext& context);
  void add_to(graph::FlowBuilder& flow) const override;

 private:
  graph::Part router_;
  std::vector<graph::Part> branches_;
  graph::SwitchBy by_;
};

class TagGroup final : public Verb {
 public:
  explicit TagGroup(const Config& config);
  void add_to(graph::FlowBuilder& flow) const override;

 private:
  std::string group_;
};

}  // namespace treadle::model_graphs
