#pragma once

#include <string>
#include <vector>

#include <treadle/core/model/abilities/draws_in_training.h>
#include <treadle/core/model/abilities/names_outputs.h>
#include <treadle/core/model/abilities/takes_absent.h>
#include <treadle/core/model/abilities/takes_indices.h>
#include <treadle/core/model/abilities/works_step_by_step.h>
#include <treadle/core/model/layer.h>

#include "stream.h"

namespace treadle::layers {

/// The equations of PyTorch's rnn with tanh, gru and lstm, and how many rows of weights they have
/// for each unit.
enum class Recurrence { kTanh, kGru, kLstm };

/// One step of time: rows [B, in] and, as a reference, the state [B, units] of the step before; an
/// lstm's is [B, 2 · units], hidden and cell. A state that is absent is zeros. Gives the state.
/// "weight_ih", "weight_hh", "bias_ih", "bias_hh" as torch.nn's cells.
///
///     {"use": "gru_cell", "hidden_size": 64, "using": ["h"], "tag": "h"}
template <Recurrence kRecurrence>
class RecurrentCell final : public Layer, public TakesAbsent {
 public:
  RecurrentCell(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;

 private:
  std::int64_t units_;
  at::Tensor weight_ih_;
  at::Tensor weight_hh_;
  at::Tensor bias_ih_;
  at::Tensor bias_hh_;
};

/// Whole sequences: [B, T, in] to [B, T, units], or to the last step's [B, units]; with both
/// directions twice as wide, the last step being that of each direction. States begin as zeros in
/// each forward. Weights as torch.nn's layers name them.
///
/// Further outputs: "h_n", and of an lstm "c_n", the last hidden and cell state of each layer and
/// direction, in torch.nn's order but rows first: [B, layers · directions, units].
///
/// With lengths [B] as its reference it goes over each row's own steps, as torch.nn does over a
/// packed sequence: padding changes nothing, and what it gives for padding is zeros.
///
/// Where gradients end at every step of time it runs step by step, each taking the state before it
/// as a number: libtorch's loop over the steps cannot be cut. Values are the same but for rounding.
template <Recurrence kRecurrence>
class Recurrent final : public Layer,
                        public TakesIndices,
                        public NamesOutputs,
                        public WorksStepByStep,
                        public DrawsInTraining {
 public:
  Recurrent(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  bool takes_indices(std::size_t index) const override { return index > 0; }
  std::vector<std::string> output_names() const override;
  double calls_per_time_step() const override;
  bool draws_in_training() const override { return layers_ > 1 && dropout_ > 0; }

 private:
  /// The sequence, and the last state of each layer and direction: [layers · directions, B, units].
  struct Result {
    at::Tensor sequence;
    at::Tensor hidden;
    at::Tensor cell;  ///< undefined but for an lstm
  };
  Result over_all(const at::Tensor& x) const;
  Result over_lengths(const at::Tensor& x, const at::Tensor& lengths, bool by_steps) const;
  /// The same for rows by falling length, none of which is 0.
  Result over_packed(const at::Tensor& x, const at::Tensor& lengths) const;
  /// Over all, or by falling length where `lengths` are defined; gradients end at every step.
  Result step_by_step(const at::Tensor& x, const at::Tensor& lengths) const;

  std::int64_t units_;
  std::int64_t layers_;
  double dropout_;
  bool both_;
  bool only_last_;
  std::vector<at::Tensor> weights_;
};

}  // namespace treadle::layers
