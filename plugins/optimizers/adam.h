#pragma once

#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/training/optimizer.h>

namespace treadle::optimizers {

/// What Adam and AdamW share (Kingma & Ba 2015; Loshchilov & Hutter 2019), as in torch.optim:
///
///     m <- beta1 * m + (1 - beta1) * g
///     v <- beta2 * v + (1 - beta2) * g^2
///     p <- p - rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
///
/// t counts the updates of one segment: a segment that was skipped does not age.
class AdamFamily : public Optimizer {
 protected:
  enum class Decay {
    kThroughGradient,  ///< g <- g + weight_decay * p first
    kDirect            ///< p <- (1 - rate * weight_decay) * p first
  };
  enum class Moments { kFull, kEightBits };
  AdamFamily(const Config& config, Decay decay, Moments moments = Moments::kFull);

 private:
  /// Positions in slots().
  enum Slot : std::size_t { kFirstMoment, kSecondMoment };

  double do_learning_rate() const final { return learning_rate_; }
  std::vector<SlotSpec> do_slots() const final;
  void do_update(ParameterView& view) const final;

  void update_tensors(ParameterView& view) const;

  template <typename T>
  void update_as(const HostParameters& host) const;

  Decay decay_;
  Moments moments_;
  double learning_rate_;
  double beta1_;
  double beta2_;
  double eps_;
  double weight_decay_;
};

class Adam final : public AdamFamily {
 public:
  explicit Adam(const Config& config) : AdamFamily(config, Decay::kThroughGradient) {}
};

class AdamW final : public AdamFamily {
 public:
  explicit AdamW(const Config& config) : AdamFamily(config, Decay::kDirect) {}
};

/// AdamW whose moments have 8 bits (core/block_quantization.h). An update reads them, computes in
/// float32 or better, and rounds them; the gradient of the step itself is not rounded.
/// Source: Dettmers et al., "8-bit Optimizers via Block-wise Quantization" (2022).
class AdamW8bit final : public AdamFamily {
 public:
  explicit AdamW8bit(const Config& config)
      : AdamFamily(config, Decay::kDirect, Moments::kEightBits) {}
};

}  // namespace treadle::optimizers
