#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <treadle/core/model/layer.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>

/// What every LayerFactory, and the layers it makes, must keep. Include in one source file of a
/// test program:
///
///     INSTANTIATE_TEST_SUITE_P(Layers, LayerContract, ::testing::Values(
///         LayerCase{"Dense", [] { return plugin().make<LayerFactory>("dense"); }}), CaseName());
namespace treadle::testing {

/// What one step of time hands to the next: the state it is given, or the same as a number.
using HandOn = std::function<at::Tensor(const at::Tensor& state)>;

struct LayerCase {
  std::string name;
  std::function<std::unique_ptr<LayerFactory>()> make;
  /// Sizes of each input behind the batch. One that is empty and stands behind the first is a state
  /// that is absent.
  std::vector<std::vector<std::int64_t>> inputs = {{6}};
  std::int64_t output_width = 3;  ///< what the loss requires
  /// Training gives other results than evaluation: it draws random numbers (dropout) or looks at
  /// the whole batch (batch norm).
  bool training_differs = false;
  /// More than 0: the first input is indices of so many categories, int64.
  std::int64_t categories = 0;
  /// What each input holds; inputs beyond them hold features. Lengths are of sequences of five, as
  /// sizes that vary are.
  std::vector<Role> roles = {};
  std::vector<std::int64_t> output_positions = {};  ///< of what the loss requires
  /// The result's rows are the input's, each a function of its own row.
  bool works_row_by_row = true;
  /// Its losses are of the whole call, not sums over rows that add up: of shares of a batch, say.
  bool has_losses_of_batch = false;
  /// Made for evaluation step by step, see LayerSpec.
  bool is_step_by_step = false;
  /// Gradients exist: not for a layer that chooses.
  bool is_differentiable = true;
  /// Of a layer that carries a state through the steps of a sequence, and of no other: what
  /// forward() returns, in plain operators, where each state passes through `hand_on` before the
  /// next step takes it. Draws as forward() does.
  std::function<at::Tensor(const Layer& layer, const std::vector<at::Tensor>& inputs,
                           const HandOn& hand_on)>
      by_hand = nullptr;
};

TREADLE_CONTRACT_SUITE(LayerContract, LayerCase);

}  // namespace treadle::testing
