#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <treadle/base/config.h>
#include <treadle/core/components/extra_state.h>
#include <treadle/core/model/model.h>

#include "kept_margins.h"
#include "tree_grower.h"
#include "tree_sum.h"

namespace treadle::trees {

/// Gradient-boosted trees as a model without parameters; the trees are its extra state. Trained by
/// the loop Boosting.
///
/// Inputs of all ports are flattened and put beside each other, in float32. The one output is the
/// margins: numbers of a target, or logits. Of two classes under a softmax there is one margin m,
/// and the output is (0, m).
class TreesModel final : public Model, public ExtraState {
 public:
  /// Throws a DataError where trees cannot have such inputs or outputs.
  TreesModel(const ModelSpec& spec, GrowthOptions options);

  const GrowthOptions& options() const { return options_; }
  const TreeSum& trees() const { return trees_; }
  TreeSum& trees() { return trees_; }

  /// The inputs as trees read them: float32 [B, columns], contiguous, on the CPU.
  static at::Tensor rows_of(const Inputs& inputs);
  /// The output that margins [B, margins] are; the same tensor where they are all of it.
  at::Tensor output_of(const at::Tensor& margins) const;

  /// Whether forward() keeps the margins of each batch, as it is evaluated after each round: then
  /// an evaluation adds new rounds alone, with the same bits. Each call forgets kept margins.
  void keep_margins(bool keeps);

  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext& context) override;
  std::string extra_state() const override { return trees_.bytes(); }
  void load_extra_state(std::string_view bytes) override;

 private:
  const GrowthOptions options_;
  const std::int64_t width_;  // of the output
  const c10::ScalarType dtype_;
  TreeSum trees_;
  std::unique_ptr<KeptMargins> kept_;  // null: margins are not kept
};

class TreesProvider final : public ModelProvider {
 public:
  explicit TreesProvider(const Config& config);

 private:
  std::shared_ptr<Model> do_create(const ModelSpec& spec) const override;

  GrowthOptions options_;
};

}  // namespace treadle::trees
