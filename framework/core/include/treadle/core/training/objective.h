#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/number.h>
#include <treadle/core/model/auxiliary_loss.h>
#include <treadle/core/training/chunked_loss.h>
#include <treadle/core/training/loss.h>

namespace treadle {

/// The loss of some rows, term by term. Adds up over the parts of a batch and over batches.
struct BatchLoss {
  /// A term of the Objective, without its graph once it has been back-propagated.
  struct Term {
    at::Tensor sum;
    at::Tensor weight;  ///< undefined: `count`
    double count = 0;   ///< positions, where each counts 1
  };
  std::vector<Term> terms;  ///< one per Objective::terms()
  /// Terms the model added, in the order of their first appearance.
  std::vector<AuxiliaryLoss> auxiliary;

  void add(const BatchLoss& more);
};

/// The objective that training minimizes:
///
///     sum over terms i:  factor_i * sum_i / weight_i   +   sum over auxiliary terms:  sum / rows
///
/// where sums and weights are over all rows of an optimizer step. Made by the host from the
/// document's `loss`; const functions may be called from several threads.
class Objective {
 public:
  /// One entry of the document's `loss`. The loss is borrowed.
  struct Term {
    const Loss* loss = nullptr;
    std::size_t target = 0;  ///< index in DataSpec::targets
    double factor = 1;
    std::string name = "loss";  ///< unique; how logs call it
  };

  /// Queries every loss for its outputs. Terms of one target whose losses require the same output
  /// share it; with several targets an output is named after its target.
  Objective(std::vector<Term> terms, std::span<const TargetSpec> targets);

  const std::vector<Term>& terms() const { return terms_; }
  const std::vector<TargetSpec>& targets() const { return targets_; }
  /// The outputs that the model must compute.
  const std::vector<OutputSpec>& outputs() const { return outputs_; }
  bool is_additive() const;
  /// The number of chunks in which the loss is computed of a DeferredOutput; 0: it takes outputs as
  /// a whole.
  std::int64_t output_chunks() const { return output_chunks_; }
  /// The count of the first term's sum, where each counts 1: rows, or time steps of all rows.
  std::int64_t positions(const Batch& batch) const;
  /// The weight of each term over the batch, 0-dim.
  std::vector<at::Tensor> weights(const Batch& batch) const;
  /// Whether the weights of a whole step are needed to combine the sums of a part: not where there
  /// is one term of factor 1, and nothing that a model adds.
  bool needs_weights() const { return terms_.size() != 1 || terms_.front().factor != 1; }

  /// The terms of `batch`, differentiable; of mixed rows, the loss that Mixture defines. Outputs of
  /// other rows throw a TrainingError, and mixed rows a UsageError where a loss is not additive.
  std::vector<BatchLoss::Term> forward(const std::vector<at::Tensor>& outputs,
                                       const Batch& batch) const;

  /// The same of an output that is deferred. Expects output_chunks().
  std::vector<BatchLoss::Term> forward_in_chunks(const DeferredOutput& output,
                                                 const Batch& batch) const;

  /// One for each target, by its first term; that of a target without a term has no values. Outputs
  /// of other rows than the batch's throw a TrainingError.
  Predictions predictions(const std::vector<at::Tensor>& outputs, const Batch& batch) const;

  /// The loss that the predictions of a target come from: that of its first term. Null where it has
  /// none.
  const Loss* predicts(std::size_t target) const;

  /// One draw for each row of the distribution that is predicted for a target, as
  /// DrawsSamples::draw() has it. Expects that predicts(target) draws samples.
  at::Tensor draw(std::size_t target, const std::vector<at::Tensor>& outputs,
                  std::span<const std::uint64_t> seeds) const;

  /// Of a target, from its loss where that PredictsUncertainty; else nothing is defined.
  Prediction::Uncertainty uncertainty(std::size_t target,
                                      const std::vector<at::Tensor>& outputs) const;

  /// The mean over any rows, of the terms' sums and weights over them: undefined where a term has
  /// weight 0.
  Number value(std::span<const double> sums, std::span<const double> weights) const;

  /// The factors that turn the sums of a part of a step into one number to back-propagate. Divided
  /// by the first term's weight over the whole step, that number is the objective. For a single
  /// term it is its sum.
  class Scales {
   public:
    /// For a step that trains on `batch`. Both must outlive the scales.
    Scales(const Objective& objective, const Batch& batch);
    /// For a step of `rows` rows of which a part alone is here. `weights`: of each term, over the
    /// whole step, 0-dim; empty where one term of factor 1 is all there is to combine. The
    /// objective must outlive the scales.
    Scales(const Objective& objective, std::vector<at::Tensor> weights, std::int64_t rows);
    /// Of a loss that has one term, whatever it is.
    Scales() = default;

    /// From now on that number is multiplied by `factor`, 0-dim.
    void multiply(at::Tensor factor) { factor_ = std::move(factor); }

    /// The differentiable number for a part of the batch.
    at::Tensor combine(const BatchLoss& part) const;

   private:
    void find_factors();
    at::Tensor weight_of(std::size_t term) const;

    const Objective* objective_ = nullptr;  // null: one term of no objective
    const Batch* batch_ = nullptr;          // null: weights_ has what is known of the step
    std::vector<at::Tensor> weights_;
    std::int64_t rows_ = 0;
    std::vector<at::Tensor> factors_;  // 0-dim, one per term; empty: a single term of factor 1
    at::Tensor factor_;                // of all; undefined: 1
  };

 private:
  at::Tensor weight_of(const Term& term, const Batch& batch) const;
  BatchLoss::Term forward(const Term& term, const std::vector<at::Tensor>& outputs,
                          const Batch& batch) const;
  template <typename Forward>
  std::vector<BatchLoss::Term> of_both(const Batch& mixed, const Forward& forward) const;
  /// Calls `work` with the outputs of a term, which are all of them where there is one term.
  template <typename Work>
  auto with_outputs_of(std::size_t term, const std::vector<at::Tensor>& all, Work&& work) const;

  std::vector<Term> terms_;
  std::vector<TargetSpec> targets_;
  std::vector<OutputSpec> outputs_;
  std::vector<std::vector<std::size_t>> outputs_of_terms_;
  std::int64_t output_chunks_ = 0;
};

}  // namespace treadle
