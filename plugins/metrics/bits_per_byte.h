#pragma once

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/validation/metric_computer.h>

namespace treadle::metrics {

/// `bits_per_byte`: sum of -log2 p(right token) over the sum of the bytes of right tokens, lower is
/// better. p is kept within [eps, 1 - eps] as for the log loss. The bytes of a token are those of
/// its name, see token_names() in core/tokenizer.h. Memory: two numbers.
///
/// Source: L. Gao et al., "The Pile", 2020, section 3.1.
class BitsPerByte final : public MetricComputer {
 public:
  explicit BitsPerByte(const Config&) {}

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  at::Tensor bytes_of_class_;  // float64 [classes]
  double nats_ = 0;
  double bytes_ = 0;
};

}  // namespace treadle::metrics
