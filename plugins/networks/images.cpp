#include "images.h"

#include <array>
#include <string>
#include <utility>

#include <treadle/base/error.h>

#include "steps.h"

namespace treadle::networks {
namespace {

using nlohmann::json;

constexpr const char* kImages = "images [B, channels, height, width]";

const TensorSpec& expect_images(const LayerSpec& spec) {
  const TensorSpec& images = spec.inputs.front();
  if (spec.inputs.size() != 1 || images.sizes.size() != 4) {
    throw DataError(
        std::string("takes one input of ") + kImages + ", got " +
        (spec.inputs.size() == 1 ? images.text() : std::to_string(spec.inputs.size()) + " inputs"));
  }
  return images;
}

/// A convolution whose result a batch norm shifts, so that it needs no bias.
json convolution(const std::string& name, std::int64_t out, std::int64_t kernel,
                 std::int64_t stride = 1) {
  json step = named("conv2d", name);
  step["out_channels"] = out;
  step["kernel_size"] = kernel;
  step["stride"] = stride;
  step["padding"] = kernel / 2;
  step["bias"] = false;
  step["init"] = "kaiming_normal";
  return step;
}

void add_normed(json& steps, json convolution, const std::string& norm) {
  steps.push_back(std::move(convolution));
  steps.push_back(named("batch_norm", norm));
}

void add_head(json& steps, const std::string& name) {
  steps.push_back(named("head", name));
}

}  // namespace

// --- ResNet

/// Table 1 of the paper.
struct ResNet::Stages {
  std::int64_t depth;
  std::array<std::int64_t, 4> blocks;
  bool has_bottlenecks;  ///< 1 x 1, 3 x 3, 1 x 1, the last four times as wide
};

namespace {
constexpr std::int64_t kExpansion = 4;
}

ResNet::ResNet(const Config& config)
    : stages_([&]() -> const Stages& {
        static constexpr std::array<Stages, 5> kStages{{{18, {2, 2, 2, 2}, false},
                                                        {34, {3, 4, 6, 3}, false},
                                                        {50, {3, 4, 6, 3}, true},
                                                        {101, {3, 4, 23, 3}, true},
                                                        {152, {3, 8, 36, 3}, true}}};
        const auto depth = config.get<std::int64_t>("depth");
        for (const Stages& stages : kStages) {
          if (stages.depth == depth)
            return stages;
        }
        config.fail("depth", "must be 18, 34, 50, 101 or 152, got " + std::to_string(depth));
      }()),
      width_(config.get<std::int64_t>("width")),
      has_small_stem_(config.get<std::string>("stem") == "small"),
      has_head_(config.get<bool>("head")) {}

json ResNet::block(std::int64_t in, std::int64_t channels, std::int64_t stride) const {
  json steps = json::array({{{"use", "identity"}, {"tag", "x"}}});
  std::int64_t out = channels;
  if (stages_.has_bottlenecks) {
    out = kExpansion * channels;
    add_normed(steps, convolution("conv1", channels, 1), "bn1");
    steps.push_back("relu");
    add_normed(steps, convolution("conv2", channels, 3, stride), "bn2");
    steps.push_back("relu");
    add_normed(steps, convolution("conv3", out, 1), "bn3");
  } else {
    add_normed(steps, convolution("conv1", channels, 3, stride), "bn1");
    steps.push_back("relu");
    add_normed(steps, convolution("conv2", channels, 3), "bn2");
  }
  steps.back()["tag"] = "f";
  // A shortcut of another size is a convolution, too: option B of section 3.3.
  std::string shortcut = "x";
  if (stride != 1 || in != out) {
    shortcut = "shortcut";
    steps.push_back({{"use", "at"}, {"tags", {"x"}}});
    add_normed(steps, convolution("downsample.0", out, 1, stride), "downsample.1");
    steps.back()["tag"] = shortcut;
  }
  steps.push_back({{"use", "at"}, {"tags", {"f", shortcut}}});
  steps.push_back({{"use", "merge"}, {"with", "add"}});
  steps.push_back("relu");
  return steps;
}

json ResNet::do_build(const LayerSpec& spec) const {
  expect_images(spec);
  json steps = json::array();
  add_normed(steps, convolution("conv1", width_, has_small_stem_ ? 3 : 7, has_small_stem_ ? 1 : 2),
             "bn1");
  steps.push_back("relu");
  if (!has_small_stem_) {
    steps.push_back({{"use", "max_pool2d"}, {"kernel_size", 3}, {"stride", 2}, {"padding", 1}});
  }
  std::int64_t in = width_;
  for (std::size_t stage = 0; stage < stages_.blocks.size(); ++stage) {
    const std::int64_t channels = width_ << stage;
    for (std::int64_t i = 0; i < stages_.blocks[stage]; ++i) {
      const std::int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      steps.push_back(part("layer" + std::to_string(stage + 1) + "." + std::to_string(i),
                           block(in, channels, stride)));
      in = stages_.has_bottlenecks ? kExpansion * channels : channels;
    }
  }
  steps.push_back({{"use", "reduce"}, {"dims", {2, 3}}, {"reduction", "mean"}});
  if (has_head_)
    add_head(steps, "fc");
  return steps;
}

// --- U-Net

UNet::UNet(const Config& config)
    : width_(config.get<std::int64_t>("width")),
      depth_(config.get<std::int64_t>("depth")),
      has_head_(config.get<bool>("head")) {}

json UNet::do_build(const LayerSpec& spec) const {
  const TensorSpec& images = expect_images(spec);
  const std::int64_t unit = std::int64_t{1} << depth_;
  for (const std::size_t dim : {std::size_t{2}, std::size_t{3}}) {
    const std::int64_t size = images.sizes[dim];
    if (size != TensorSpec::kVaries && size % unit != 0) {
      throw DataError("halves images " + std::to_string(depth_) +
                      " times, so height and width must be multiples of " + std::to_string(unit) +
                      ", got " + images.text() + "; pad them, or lower \"depth\"");
    }
  }
  const auto add_pair = [](json& steps, const std::string& name, std::int64_t channels) {
    json pair = json::array();
    for (const std::string number : {"1", "2"}) {
      add_normed(pair, convolution("conv" + number, channels, 3), "norm" + number);
      pair.push_back("relu");
    }
    steps.push_back(part(name, std::move(pair)));
  };
  json steps = json::array();
  for (std::int64_t level = 0; level < depth_; ++level) {
    const std::string number = std::to_string(level);
    add_pair(steps, "down." + number, width_ << level);
    steps.back()["tag"] = "level_" + number;
    steps.push_back({{"use", "max_pool2d"}, {"kernel_size", 2}});
  }
  add_pair(steps, "middle", width_ << depth_);
  for (std::int64_t level = depth_ - 1; level >= 0; --level) {
    const std::string number = std::to_string(level);
    json doubling = named("conv_transpose2d", "up." + number + ".conv_transpose");
    doubling["out_channels"] = width_ << level;
    doubling["kernel_size"] = 2;
    doubling["stride"] = 2;
    doubling["tag"] = "larger_" + number;
    steps.push_back(std::move(doubling));
    steps.push_back({{"use", "at"}, {"tags", {"level_" + number, "larger_" + number}}});
    steps.push_back({{"use", "merge"}, {"with", {{"use", "cat"}, {"dim", 1}}}});
    add_pair(steps, "up." + number + ".pair", width_ << level);
  }
  if (has_head_) {
    json head = named("head", "outc");
    head["channels"] = "first";
    steps.push_back(std::move(head));
  }
  return steps;
}

// --- MLP-Mixer

MlpMixer::MlpMixer(const Config& config)
    : patch_(config.get<std::int64_t>("patch_size")),
      width_(config.get<std::int64_t>("width")),
      layers_(config.get<std::int64_t>("num_layers")),
      tokens_(config.get<std::int64_t>("tokens_mlp_dim")),
      channels_(config.get<std::int64_t>("channels_mlp_dim")),
      dropout_(config.get<double>("dropout")),
      has_head_(config.get<bool>("head")) {}

json MlpMixer::do_build(const LayerSpec& spec) const {
  const std::int64_t patches = patches_of(expect_images(spec), patch_);
  const auto add_network = [&](json& steps, const std::string& name, std::int64_t hidden,
                               std::int64_t out) {
    steps.push_back(dense(name + ".fc1", hidden));
    steps.push_back("gelu");
    add_dropout(steps, dropout_);
    steps.push_back(dense(name + ".fc2", out));
    add_dropout(steps, dropout_);
  };
  json steps = json::array();
  add_patches(steps, "stem.proj", patch_, width_);
  for (std::int64_t i = 0; i < layers_; ++i) {
    json along_patches = json::array({named("layer_norm", "norm1"), "transpose"});
    add_network(along_patches, "mlp_tokens", tokens_, patches);
    along_patches.push_back("transpose");
    json along_channels = json::array({named("layer_norm", "norm2")});
    add_network(along_channels, "mlp_channels", channels_, width_);
    json block = json::array();
    for (json* const body : {&along_patches, &along_channels})
      block.push_back({{"use", "residual"}, {"body", std::move(*body)}});
    steps.push_back(part("blocks." + std::to_string(i), std::move(block)));
  }
  steps.push_back(named("layer_norm", "norm"));
  steps.push_back({{"use", "reduce"}, {"dims", {1}}, {"reduction", "mean"}});
  if (has_head_)
    add_head(steps, "head");
  return steps;
}

// --- ViT

VisionTransformer::VisionTransformer(const Config& config)
    : patch_(config.get<std::int64_t>("patch_size")),
      width_(config.get<std::int64_t>("width")),
      layers_(config.get<std::int64_t>("num_layers")),
      heads_(config.get<std::int64_t>("num_heads")),
      feed_forward_(config.get<std::int64_t>("dim_feedforward")),
      dropout_(config.get<double>("dropout")),
      has_head_(config.get<bool>("head")) {
  expect_even_heads(config, "width");
}

json VisionTransformer::do_build(const LayerSpec& spec) const {
  patches_of(expect_images(spec), patch_);
  json steps = json::array();
  add_patches(steps, "conv_proj", patch_, width_);
  steps.push_back(named("class_token", "class_token"));
  steps.push_back(named("positional_encoding", "pos_embedding"));
  add_dropout(steps, dropout_);
  json encoder = named("graph", "encoder");
  encoder["builder"] = {{"use", "transformer_encoder"},
                        {"num_layers", layers_},
                        {"num_heads", heads_},
                        {"dim_feedforward", feed_forward_},
                        {"dropout", dropout_},
                        {"activation", "gelu"},
                        {"norm_first", true}};
  steps.push_back(std::move(encoder));
  steps.push_back({{"use", "select"}, {"dim", 1}, {"index", 0}});
  if (has_head_)
    add_head(steps, "head");
  return steps;
}

}  // namespace treadle::networks
