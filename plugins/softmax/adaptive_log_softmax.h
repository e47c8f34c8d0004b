#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/model/layer.h>

#include "linear_map.h"

namespace treadle::softmax {

/// Log-probabilities of num_classes classes that are sorted by frequency, the most frequent first:
/// [..., width] to [..., num_classes]. Grave et al., "Efficient softmax approximation for GPUs"
/// (2017); torch.nn.AdaptiveLogSoftmaxWithLoss has the same values and names of parameters.
///
/// The head has a logit for each class below cutoffs[0] and one for each cluster of the others;
/// cluster i, from cutoffs[i] to the next, is a softmax of its own, behind a projection to
/// width / div_value^(i + 1). log p(class) = log p(cluster) + log p(class in cluster).
///
/// cross_entropy is its loss: numbers that already are log-probabilities keep their values there.
class AdaptiveLogSoftmax final : public Layer {
 public:
  AdaptiveLogSoftmax(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  static void check(const Config& config);

 private:
  struct Cluster {
    at::Tensor projection;  // [width / div_value^(i + 1), width]
    at::Tensor weight;      // [classes of the cluster, width / div_value^(i + 1)]
  };

  std::int64_t in_head_;    // classes that the head has logits of
  at::Tensor head_weight_;  // [in_head + clusters, width]
  at::Tensor head_bias_;    // undefined without "head_bias"
  std::vector<Cluster> clusters_;
};

}  // namespace treadle::softmax
