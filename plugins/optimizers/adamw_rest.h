#pragma once

#include <cstdint>

#include <treadle/base/config.h>
#include <treadle/core/training/parameter_view.h>

namespace treadle::optimizers {

/// AdamW for the parameters that another rule leaves: the numbers, and the update of one segment.
///
/// The first moment is a slot per element, which the other rule may use for its own segments; the
/// second is a kTensor of the segments that AdamW updates.
class AdamWRest {
 public:
  /// From `adamw_betas`, `adamw_eps`, `adamw_weight_decay`.
  explicit AdamWRest(const Config& config);

  /// By tensor operations. `rate`: float64 [].
  void update(const ParameterPiece& layer, const at::Tensor& rate, at::ScalarType dtype,
              std::size_t first_moment, std::size_t second_moment) const;
  /// By a loop, for the segment at `index`.
  void update(const HostParameters& host, std::size_t index, double rate, std::size_t first_moment,
              std::size_t second_moment) const;

 private:
  double beta1_;
  double beta2_;
  double eps_;
  double weight_decay_;
};

}  // namespace treadle::optimizers
