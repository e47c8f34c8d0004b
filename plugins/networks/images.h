#pragma once

#include <cstdint>

#include <treadle/base/config.h>
#include <treadle/core/model/graph_builder.h>

/// Networks for images [B, channels, height, width].
namespace treadle::networks {

/// He et al., "Deep Residual Learning for Image Recognition" (2016), as torchvision's resnet18 to
/// resnet152: bottlenecks have their stride in the 3 x 3 convolution. Nodes have torchvision's
/// names. With "stem": "small", the network of section 4.2 for small images: a 3 x 3 convolution,
/// no pooling.
class ResNet final : public GraphBuilder {
 public:
  explicit ResNet(const Config& config);

 private:
  struct Stages;
  nlohmann::json do_build(const LayerSpec& spec) const override;
  nlohmann::json block(std::int64_t in, std::int64_t channels, std::int64_t stride) const;

  const Stages& stages_;
  std::int64_t width_;
  bool has_small_stem_;
  bool has_head_;
};

/// Ronneberger et al., "U-Net" (2015), with padding, so that outputs have the images' size, and
/// batch normalization: stages of two convolutions, halved by pooling, then doubled by transposed
/// convolutions, each beside its counterpart on the way down.
class UNet final : public GraphBuilder {
 public:
  explicit UNet(const Config& config);

 private:
  nlohmann::json do_build(const LayerSpec& spec) const override;

  std::int64_t width_;
  std::int64_t depth_;
  bool has_head_;
};

/// Tolstikhin et al., "MLP-Mixer" (2021): patches, then blocks of two networks of two dense layers,
/// one along patches, one along channels.
class MlpMixer final : public GraphBuilder {
 public:
  explicit MlpMixer(const Config& config);

 private:
  nlohmann::json do_build(const LayerSpec& spec) const override;

  std::int64_t patch_;
  std::int64_t width_;
  std::int64_t layers_;
  std::int64_t tokens_;
  std::int64_t channels_;
  double dropout_;
  bool has_head_;
};

/// Dosovitskiy et al., "An Image Is Worth 16x16 Words" (2021), as torchvision's vit_b_16: patches,
/// a class token, learned positions, pre-norm blocks with GELU, the class token's output.
class VisionTransformer final : public GraphBuilder {
 public:
  explicit VisionTransformer(const Config& config);

 private:
  nlohmann::json do_build(const LayerSpec& spec) const override;

  std::int64_t patch_;
  std::int64_t width_;
  std::int64_t layers_;
  std::int64_t heads_;
  std::int64_t feed_forward_;
  double dropout_;
  bool has_head_;
};

}  // namespace treadle::networks
