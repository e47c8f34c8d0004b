#pragma once

#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/components/state_dict.h>
#include <treadle/core/model/auxiliary_loss.h>
#include <treadle/core/model/deferred_output.h>
#include <treadle/core/model/logged_values.h>
#include <treadle/core/precision/precision.h>

namespace treadle {

struct Batch;

/// Everything that belongs to one call of a model, or to one stream of calls, and therefore not to
/// the model: two streams may use one model at once.
///
/// Made by the framework. Code that calls a model on part of a batch derives the part's context
/// with part(), so that logs, losses and whatever else comes later reach the model on every way.
class ForwardContext {
 public:
  explicit ForwardContext(std::stop_token stop = {}, const Precision& precision = {})
      : stop_(std::move(stop)), precision_(precision) {}

  const std::stop_token& stop() const { return stop_; }
  /// The dtypes in which the model computes.
  const Precision& precision() const { return precision_; }

  /// The model's recurrent state: what it keeps from one call to the next within a stream. Saved in
  /// checkpoints.
  StateDict& state() { return state_; }
  const StateDict& state() const { return state_; }

  /// Whether values are logged: only training forwards are.
  bool is_logging() const { return log_ != nullptr; }
  /// Logs a value of this batch; its mean over an epoch is in the history. Ignored when nothing is
  /// logged. See LoggedValues::add().
  void log(std::string_view name, const at::Tensor& value, std::optional<Reduction> by = {});

  /// Adds a term to the loss: a sum over the rows of this call, differentiable, scaled by the
  /// model. Its mean over rows is in the history under `name`. Ignored outside training.
  void add_loss(std::string_view name, at::Tensor sum);
  bool takes_losses() const { return takes_losses_; }

  /// The batch of this call, with targets, in training and validation; null in prediction. For
  /// teacher forcing.
  const Batch* batch() const { return batch_; }

  /// Whether gradients end at every step of time: a recurrent model then detaches its state before
  /// each step takes it. Values stay the same. Set by TruncatingBptt (gradient_strategy.h).
  ///
  /// Source: truncated back-propagation through time (Williams & Peng 1990) with a horizon of 1.
  bool truncates_bptt() const { return truncates_bptt_; }

  /// Whether each layer is called, in place of the operations that a compiled model made of it:
  /// while statistics are gathered, which those would count as in ordinary training.
  bool calls_layers() const { return calls_layers_; }

  /// Whether the caller takes a DeferredOutput in place of the model's one output, which is then
  /// left undefined. A model need not give it.
  bool takes_deferred_output() const { return takes_deferred_output_; }
  void defer_output(DeferredOutput output) { deferred_output_ = std::move(output); }

  /// The context of a part of the batch whose stream is called `name`: everything of this one, but
  /// the part's own state. Give it back with join().
  ForwardContext part(std::string_view name) const;
  void join(std::string_view name, ForwardContext&& part);

  // For the framework.
  void set_log(LoggedValues* log) { log_ = log; }
  void set_batch(const Batch* batch) { batch_ = batch; }
  void set_takes_losses(bool takes) { takes_losses_ = takes; }
  void set_truncated_bptt(bool one_step) { truncates_bptt_ = one_step; }
  void set_calls_layers(bool calls) { calls_layers_ = calls; }
  std::vector<AuxiliaryLoss> take_losses();
  void set_takes_deferred_output(bool takes) { takes_deferred_output_ = takes; }
  std::optional<DeferredOutput>& deferred_output() { return deferred_output_; }

 private:
  std::stop_token stop_;
  Precision precision_;
  StateDict state_;
  LoggedValues* log_ = nullptr;
  const Batch* batch_ = nullptr;
  bool takes_losses_ = false;
  bool truncates_bptt_ = false;
  bool calls_layers_ = false;
  bool takes_deferred_output_ = false;
  std::optional<DeferredOutput> deferred_output_;
  std::vector<AuxiliaryLoss> losses_;
};

}  // namespace treadle
