#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/model/abilities/names_outputs.h>
#include <treadle/core/model/layer.h>
#include <treadle/core/model/model_spec.h>

/// Layers for windows of series [B, steps, channels].
namespace treadle::forecasting {

/// Each channel of each window as (x - shift) / scale, by numbers of the window itself, so that a
/// level that moves over time does not matter. Methods:
///
/// | method   | shift       | scale                                   |
/// |----------|-------------|-----------------------------------------|
/// | last     | last value  | 1 (NLinear)                             |
/// | standard | mean        | sqrt(population variance + eps) (RevIN) |
/// | robust   | median      | interquartile range + eps               |
/// | min_max  | least value | largest - least value + eps             |
///
/// With "affine" a learned weight w (first 1) and bias b (first 0) of each channel follow, as in
/// RevIN: w · (x - shift) / scale + b.
///
/// The further output "scale", [B, 2, channels], is what WindowUnscale multiplies by and adds:
/// scale and shift, or with weights the inverse of the authors' RevIN, (x - b) / (w + eps²) · scale
/// + shift, as one product and one sum:
///
///     scale' = scale / (w + eps²),   shift' = shift - b · scale'
///
/// Zeng et al., "Are Transformers Effective for Time Series Forecasting?" (2023), and Kim et al.,
/// "Reversible Instance Normalization" (2022).
class WindowScale final : public Layer, public NamesOutputs {
 public:
  WindowScale(const Config& config, const LayerSpec& spec);

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::vector<std::string> output_names() const override { return {"scale"}; }

 private:
  struct Numbers {
    at::Tensor shift;  // [B, 1, channels]
    at::Tensor scale;  // likewise; undefined: 1
  };
  using Method = Numbers (*)(const at::Tensor& windows, double eps);
  static Method method_called(const std::string& name);

  Method method_;
  double eps_;
  at::Tensor weight_;  // [channels]; undefined without "affine"
  at::Tensor bias_;    // likewise
};

/// Undoes a WindowScale, whose output "scale" is its reference: forecasts [B, estimates · horizon,
/// channels] in the units of the window. All steps of the first estimate come first. By shift and
/// scale of the window:
///
/// | estimate      | becomes                                                                |
/// |---------------|------------------------------------------------------------------------|
/// | location      | x · scale + shift                                                      |
/// | scale         | what stands for a deviation abs(scale) times as large (scale_of())     |
/// | dimensionless | x                                                                      |
class WindowUnscale final : public Layer {
 public:
  WindowUnscale(const Config& config, const LayerSpec& spec);

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;

 private:
  std::vector<Estimate> estimates_;
};

/// A window without its trend, which is the further output "trend": a moving average over
/// `kernel_size` steps, an odd number, with the first and the last value repeated beyond the ends.
///
/// Wu et al., "Autoformer" (2021), section 3.1.
class SeriesDecomposition final : public Layer, public NamesOutputs {
 public:
  SeriesDecomposition(const Config& config, const LayerSpec& spec);

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
  std::vector<std::string> output_names() const override { return {"trend"}; }

 private:
  std::int64_t kernel_;
};

/// The last `period` steps of a window, again and again, for `horizon` steps: [B, horizon,
/// channels]. With a period of 1 the last value.
class RepeatPeriod final : public Layer {
 public:
  RepeatPeriod(const Config& config, const LayerSpec& spec);

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;

 private:
  std::int64_t period_;
  std::int64_t horizon_;
};

}  // namespace treadle::forecasting
