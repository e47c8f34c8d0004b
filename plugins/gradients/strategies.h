#pragma once

#include <memory>
#include <string>
#include <vector>

#include <treadle/base/component.h>
#include <treadle/base/config.h>
#include <treadle/core/model/abilities/logs_values.h>
#include <treadle/core/training/gradient_strategy.h>

namespace treadle::gradients {

/// Forward, loss and backward over the whole batch.
class BackPropagation final : public GradientStrategy {
 public:
  explicit BackPropagation(const Config&) {}

 private:
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override;
};

/// Another strategy, with gradients that end at every step of time (see TruncatingBptt). An
/// approximation for recurrent models; for others it changes nothing.
class TruncatedBptt final : public GradientStrategy, public LogsValues {
 public:
  TruncatedBptt(const Config& config, const ComponentContext& context);
  std::vector<std::string> logged_names() const override { return inner_->log_names(); }

 private:
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override;

  bool do_splits_batch() const override { return inner_->splits_batch(); }

  std::unique_ptr<GradientStrategy> inner_;
};

/// Another strategy, on one part of the batch after the other. Gradients of a sum add up, so the
/// result is that of the whole batch, but for rounding and for layers that look at several rows
/// (batch normalization sees a part); activations need the memory of one part.
class Accumulation final : public GradientStrategy, public LogsValues {
 public:
  Accumulation(const Config& config, const ComponentContext& context);
  std::vector<std::string> logged_names() const override { return inner_->log_names(); }

 private:
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override;

  bool do_splits_batch() const override { return true; }

  std::int64_t parts_;
  std::unique_ptr<GradientStrategy> inner_;
};

}  // namespace treadle::gradients
