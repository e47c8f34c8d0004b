#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <treadle/base/config.h>
#include <treadle/core/model/graph_builder.h>
#include <treadle/core/training/structure_search.h>

#include "operations.h"
#include "structure.h"

namespace treadle::cells {

/// A cell of operations on edges (structure.h). Edges that are mixed take their weights from the
/// reference [B, choices, operations] where there is one, and else from a layer of the cell.
class Cell final : public GraphBuilder, public DerivesNetwork {
 public:
  explicit Cell(const Config& config);

  std::string structure() const override;
  nlohmann::json derived(const StructureRecord& record) const override;

 private:
  nlohmann::json do_build(const LayerSpec& spec) const override;
  void* do_ask(std::string_view interface_id) override;

  nlohmann::json parameters_;
  Structure structure_;
  Operations operations_;
};

/// Cells of one structure, one after the other, each with weights of its own: the skeleton of
/// NAS-Bench-201 (Dong and Yang 2020, figure 1). Of images: a convolution, stages of cells, between
/// which a residual block halves the picture and doubles the channels, the mean over what is left,
/// a head. Of anything else: a dense layer, one stage, a head.
class CellNetwork final : public GraphBuilder, public DerivesNetwork {
 public:
  explicit CellNetwork(const Config& config);

  std::string structure() const override;
  nlohmann::json derived(const StructureRecord& record) const override;

 private:
  nlohmann::json do_build(const LayerSpec& spec) const override;
  void* do_ask(std::string_view interface_id) override;
  void add_cells(nlohmann::json& steps, std::int64_t stage, bool is_mixed) const;

  nlohmann::json parameters_;
  Structure structure_;
  std::int64_t width_;
  std::int64_t cells_;
  std::optional<std::int64_t> stages_;
  bool has_head_;
};

}  // namespace treadle::cells
