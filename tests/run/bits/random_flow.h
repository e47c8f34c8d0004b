#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/core/components/plugin_registry.h>
#include <treadle/core/model/layer.h>
#include <treadle/core/model/tensor_spec.h>
#include <treadle/graph/graph.h>

namespace treadle::testing {

/// Flows of whatever layers and graph builders a registry knows, parameters drawn from their
/// schemas, under every verb: the same flow for the same seed. A step is kept where the flow still
/// builds with it, so whoever adds a layer has it tried beside all others.
class RandomFlow {
 public:
  RandomFlow(const PluginRegistry& registry, std::uint64_t seed);
  /// The same for a stream that is given; of indices, they are below kCategories.
  RandomFlow(const PluginRegistry& registry, std::uint64_t seed, TensorSpec input);

  /// What the steps take: the stream.
  const TensorSpec& input() const { return input_; }
  /// Numbers of categories below this one, where the input has such.
  static constexpr std::int64_t kCategories = 10;
  const nlohmann::json& steps() const { return steps_; }
  /// With the seed's initial weights.
  std::shared_ptr<graph::Graph> build() const { return build(steps_); }
  std::shared_ptr<graph::Graph> build(const nlohmann::json& steps) const {
    return build(steps, {input_});
  }

  /// What building threw that was no Treadle error: there should be nothing.
  const std::vector<std::string>& surprises() const { return surprises_; }

 private:
  /// One flow while it grows: that of the model, or of a body, branch or expert.
  struct Scope {
    std::vector<TensorSpec> inputs;  ///< the stream, then ports
    nlohmann::json steps = nlohmann::json::array();
    TensorSpec now;
    std::map<std::string, TensorSpec> tags;
    int depth = 0;
  };
  struct Kind {
    std::string name;
    nlohmann::json schema;
  };

  std::size_t below(std::size_t count) { return random_() % count; }
  bool chance(int percent) { return static_cast<int>(below(100)) < percent; }
  template <typename T>
  const T& one_of(const std::vector<T>& all) {
    return all[below(all.size())];
  }
  std::string new_name(const std::string& of) { return of + std::to_string(names_++); }

  nlohmann::json value(const nlohmann::json& schema, const Scope& scope);
  /// Properties that must be there, and some others.
  nlohmann::json object(const nlohmann::json& schema, const Scope& scope);
  nlohmann::json with_parameters(const Kind& kind, const Scope& scope);
  nlohmann::json leaf(const Scope& scope);
  std::optional<std::string> known_tag(const Scope& scope);

  Scope inner(const Scope& outer, TensorSpec stream) const;
  Scope grown(Scope scope);
  /// Steps that give what is wanted in the end; nothing where none were found.
  std::optional<nlohmann::json> fitted(Scope scope, const TensorSpec& wanted);
  std::vector<nlohmann::json> alike(const Scope& scope, std::size_t count);
  nlohmann::json router(const std::vector<std::string>& names, std::size_t count);

  nlohmann::json residual(const Scope& scope);
  nlohmann::json split(const Scope& scope);
  nlohmann::json mixture_of_experts(const Scope& scope);
  nlohmann::json tied(const Scope& scope);
  nlohmann::json choice(const Scope& scope);
  nlohmann::json loop(const Scope& scope);
  nlohmann::json pieces(const Scope& scope);
  nlohmann::json nested(const Scope& scope);
  nlohmann::json state(const Scope& scope);
  nlohmann::json begun_state(const Scope& scope);
  nlohmann::json cell(const Scope& scope);
  nlohmann::json back(const Scope& scope);

  std::shared_ptr<graph::Graph> build(const nlohmann::json& steps,
                                      std::vector<TensorSpec> inputs) const;
  /// Whether the flow builds with these, too; they are then a part of it.
  bool adds(Scope& scope, const nlohmann::json& steps);

  void learn_components();
  void grow_from(TensorSpec input);

  const PluginRegistry& registry_;
  const std::uint64_t seed_;
  std::mt19937_64 random_;
  std::vector<Kind> layers_;
  std::vector<Kind> builders_;
  std::size_t names_ = 0;
  TensorSpec input_;
  nlohmann::json steps_;
  std::vector<std::string> surprises_;
};

}  // namespace treadle::testing
