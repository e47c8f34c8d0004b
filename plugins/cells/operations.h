#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/config.h>
#include <treadle/core/model/tensor_spec.h>

namespace treadle::cells {

/// The operations that may stand on an edge of a cell: each gives a tensor of its input's sizes.
///
/// Of images [B, channels, height, width]: conv_1x1, conv_3x3, conv_5x5 (relu, convolution, batch
/// norm), sep_conv_3x3, sep_conv_5x5 (depthwise separable, twice: Liu et al. 2019), avg_pool_3x3,
/// max_pool_3x3. Of anything else, along the last dimension: dense (dense, layer norm, relu) and
/// gated (gated_feed_forward in a residual connection). Of all: skip and zero.
class Operations {
 public:
  /// Those of `config`'s "define" too: {"name": "wide", "flow": [steps]}.
  explicit Operations(const Config& config);

  /// What is tried where a document names none: the five of NAS-Bench-201 (Dong and Yang 2020) for
  /// images, and skip, dense, gated and zero for anything else.
  static std::vector<std::string> usual(const TensorSpec& input);

  /// The steps of an operation for such an input. Throws a DataError for one that is none of them,
  /// with those there are.
  nlohmann::json steps(const std::string& operation, const TensorSpec& input) const;

 private:
  std::vector<std::pair<std::string, nlohmann::json>> defined_;
};

}  // namespace treadle::cells
