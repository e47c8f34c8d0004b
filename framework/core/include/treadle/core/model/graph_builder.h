#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

#include <treadle/base/component.h>
#include <treadle/core/model/layer.h>

namespace treadle {

/// Builds networks, whole ones or pieces: what `{"use": "graph", "builder": {"use": "residual_mlp",
/// "blocks": 4}}` in a flow names.
///
/// It returns a flow as documents have it: an array of steps, as under `"flow"`. So it is drawn,
/// saved, compiled and nested like a flow of a document, and names layers and verbs of any plugin.
/// **Rationale:** docs/decisions/0014-graph-builders-write-flows.md.
class GraphBuilder : public Component {
 public:
  static constexpr std::string_view kInterface = "treadle.graph/0";

  ~GraphBuilder() override;

  /// The steps for such inputs: the same ones every time for the same spec. Throws a DataError when
  /// it has no network for them.
  nlohmann::json build(const LayerSpec& spec) const;

 private:
  virtual nlohmann::json do_build(const LayerSpec& spec) const = 0;
};

}  // namespace treadle
