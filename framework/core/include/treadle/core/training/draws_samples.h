#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

namespace treadle {

/// A loss whose outputs are the parameters of a distribution, from which samples are drawn.
///
/// An optional ability of a Loss (`loss.ask<DrawsSamples>()`). Const functions are called from
/// several threads at once.
class DrawsSamples {
 public:
  static constexpr std::string_view kInterface = "treadle.draws-samples/0";

  virtual ~DrawsSamples();

  /// One draw for each row: [B, positions..., width], with the dtype of the outputs, on the CPU.
  /// `outputs` are as Loss::outputs_for() returned them, on the CPU, without gradients; `seeds` has
  /// B numbers.
  ///
  /// The draws of a row are a function of its outputs and its seed alone, but for rounding:
  /// whichever rows are beside it and, where its first dimension varies, whatever the padding.
  /// Other seeds give independent draws.
  at::Tensor draw(const std::vector<at::Tensor>& outputs,
                  std::span<const std::uint64_t> seeds) const {
    return do_draw(outputs, seeds);
  }

 private:
  virtual at::Tensor do_draw(const std::vector<at::Tensor>& outputs,
                             std::span<const std::uint64_t> seeds) const = 0;
};

}  // namespace treadle
