#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/model/abilities/draws_in_training.h>
#include <treadle/core/model/abilities/gathers_statistics.h>
#include <treadle/core/model/abilities/names_outputs.h>
#include <treadle/core/model/abilities/names_parameter_roles.h>
#include <treadle/core/model/layer.h>
#include <treadle/core/model/running_statistics.h>

/// The parts of PatchTST: Nie et al., "A Time Series is Worth 64 Words" (2023), with the defaults
/// of the authors' code. Each channel of a window is a sequence of its own, and all share the
/// weights.
namespace treadle::forecasting {

/// Windows [B, steps, channels] as patches [B, channels, patches, patch_len], which begin `stride`
/// steps apart. The last value is repeated `end_padding` times behind the end:
///
///     patches = (steps + end_padding - patch_len) / stride + 1
class Patches final : public Layer {
 public:
  Patches(const Config& config, const LayerSpec& spec);

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;

 private:
  std::int64_t length_;
  std::int64_t stride_;
  std::int64_t padding_;
};

/// A linear map of each patch, and a learned vector for its position:
/// [B, channels, patches, patch_len] to [B, channels, patches, width]. "weight", "bias" as
/// torch.nn, "positions" [patches, width], uniform within ±0.02.
class PatchEmbedding final : public Layer, public NamesParameterRoles {
 public:
  PatchEmbedding(const Config& config, const LayerSpec& spec);

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  Roles parameter_roles() const override { return all(ParameterRole::kTable, {positions_}); }

 private:
  at::Tensor weight_;
  at::Tensor bias_;
  at::Tensor positions_;
};

/// One layer of PatchTST's encoder, from [B, channels, patches, width] to the same:
///
///     x = norm1(x + drop(drop(attention(x))))
///     x = norm2(x + drop(linear2(drop(gelu(linear1(x))))))
///
/// Norms are batch norms over all but the width. Scores of the attention are Q Kᵀ / √d, plus those
/// of the layer before where they are its reference [B, channels, heads, patches, patches] (He et
/// al., "RealFormer", 2021); the further output "scores" has the sum.
///
/// "in_weight" [3 width, width] has queries, keys and values one below the other, as
/// torch.nn.MultiheadAttention. Two dropouts in a row, as in the authors' code, are drawn as one of
/// the same distribution.
class PatchEncoderLayer final : public Layer, public NamesOutputs, public GathersStatistics {
 public:
  PatchEncoderLayer(const Config& config, const LayerSpec& spec);

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::vector<std::string> output_names() const override { return {"scores"}; }
  void begin_gathering() override;
  void end_gathering() override;

 private:
  struct Linear {
    at::Tensor weight;
    at::Tensor bias;
  };
  struct Norm {
    at::Tensor weight;
    at::Tensor bias;
    RunningStatistics statistics;
  };
  /// Has the mode of the dropouts; the layer's own is that of its batch norms.
  class Dropouts final : public torch::nn::Module, public DrawsInTraining {
   public:
    explicit Dropouts(bool draw) : draw_(draw) {}
    bool draws_in_training() const override { return draw_; }

   private:
    bool draw_;
  };
  Linear linear(const std::string& name, std::int64_t out, std::int64_t in, c10::ScalarType dtype);
  Norm norm(const std::string& name, c10::ScalarType dtype);
  /// Of rows [N, width].
  at::Tensor normed(Norm& norm, const at::Tensor& rows) const;
  at::Tensor dropped(const at::Tensor& values, double rate) const;

  std::int64_t width_;
  std::int64_t heads_;
  double dropout_;
  double attention_dropout_;
  std::shared_ptr<Dropouts> dropouts_;
  Linear in_;
  Linear out_;
  Linear linear1_;
  Linear linear2_;
  Norm norm1_;
  Norm norm2_;
};

}  // namespace treadle::forecasting
