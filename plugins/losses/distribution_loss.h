#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/training/draws_samples.h>
#include <treadle/core/training/loss.h>
#include <treadle/core/training/predicts_uncertainty.h>

namespace treadle::losses {

/// The loss of a model that predicts a distribution for each number of a target: the mean of
/// -log p(y) over positions and numbers.
///
/// One output "parameters" [B, positions..., parameters * width]: the first parameter of every
/// number, then the second. What a network computes is any number; a derived class makes parameters
/// of it. Scales are scale_of(x), so that they are positive.
///
/// The prediction is the mean of the distribution; its quantiles are extras: "q0.1", "q0.5". Draws
/// are exact, not by interpolation between quantiles; given the outputs, numbers and positions are
/// independent. Its standard deviation is the aleatoric uncertainty.
class DistributionLoss : public Loss, public DrawsSamples, public PredictsUncertainty {
 public:
  ~DistributionLoss() override;

 protected:
  /// What a network computed: one tensor per parameter, [..., width].
  using Raw = std::vector<at::Tensor>;

  /// The seeds of the rows of a draw.
  using Seeds = std::span<const std::uint64_t>;

  /// Reads "quantiles". `name` is the component's; `parameters`: what a network computes for each
  /// number.
  DistributionLoss(const Config& config, std::string name, std::vector<Estimate> parameters);

 private:
  /// [..., width]; differentiable.
  virtual at::Tensor do_log_likelihood(const Raw& raw, const at::Tensor& target) const = 0;
  // Without gradients, on the CPU, in float64.
  virtual at::Tensor do_mean(const Raw& raw) const = 0;
  virtual at::Tensor do_variance(const Raw& raw) const = 0;
  /// One tensor for each level.
  virtual std::vector<at::Tensor> do_quantiles(const Raw& raw,
                                               const std::vector<double>& levels) const = 0;
  virtual at::Tensor do_draw_from(const Raw& raw, Seeds seeds) const = 0;

  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const final;
  LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                       const TargetBatch& target) const final;
  at::Tensor do_weight(const TargetBatch& target) const final;
  Prediction do_prediction(const std::vector<at::Tensor>& outputs) const final;
  at::Tensor do_draw(const std::vector<at::Tensor>& outputs, Seeds seeds) const final;
  Prediction::Uncertainty do_uncertainty(const std::vector<at::Tensor>& outputs) const final;
  void* do_ask(std::string_view interface_id) final;

  Raw parameters_in(const at::Tensor& output) const;

  std::string name_;
  std::vector<Estimate> parameters_;
  std::vector<double> quantiles_;   // ascending
  std::vector<std::string> names_;  // "q0.1"
};

/// `gaussian_nll`: location and scale.
///
///     -log p(y) = log(s) + z^2 / 2 + log(2 pi) / 2,   z = (y - m) / s
class GaussianNll final : public DistributionLoss {
 public:
  explicit GaussianNll(const Config& config)
      : DistributionLoss(config, "gaussian_nll", {Estimate::kLocation, Estimate::kScale}) {}

 private:
  at::Tensor do_log_likelihood(const Raw& raw, const at::Tensor& target) const override;
  at::Tensor do_mean(const Raw& raw) const override;
  at::Tensor do_variance(const Raw& raw) const override;
  std::vector<at::Tensor> do_quantiles(const Raw& raw,
                                       const std::vector<double>& levels) const override;
  at::Tensor do_draw_from(const Raw& raw, Seeds seeds) const override;
};

/// `student_t_nll`: location, scale and degrees of freedom v > 2, so that the variance is finite.
///
///     log p(y) = lnG((v+1)/2) - lnG(v/2) - log(v pi)/2 - log(s) - (v+1)/2 log(1 + z^2 / v)
class StudentTNll final : public DistributionLoss {
 public:
  explicit StudentTNll(const Config& config)
      : DistributionLoss(config, "student_t_nll",
                         {Estimate::kLocation, Estimate::kScale, Estimate::kDimensionless}) {}

 private:
  at::Tensor do_log_likelihood(const Raw& raw, const at::Tensor& target) const override;
  at::Tensor do_mean(const Raw& raw) const override;
  at::Tensor do_variance(const Raw& raw) const override;
  std::vector<at::Tensor> do_quantiles(const Raw& raw,
                                       const std::vector<double>& levels) const override;
  at::Tensor do_draw_from(const Raw& raw, Seeds seeds) const override;
};

/// `negative_binomial_nll`, for counts: mean m and dispersion a > 0, variance m + a m^2. With
/// r = 1 / a:
///
///     log p(y) = lnG(y + r) - lnG(r) - lnG(y + 1) + y log(a m) - (y + r) log(1 + a m)
class NegativeBinomialNll final : public DistributionLoss {
 public:
  explicit NegativeBinomialNll(const Config& config)
      : DistributionLoss(config, "negative_binomial_nll", {Estimate::kCount, Estimate::kCount}) {}

 private:
  at::Tensor do_log_likelihood(const Raw& raw, const at::Tensor& target) const override;
  at::Tensor do_mean(const Raw& raw) const override;
  at::Tensor do_variance(const Raw& raw) const override;
  std::vector<at::Tensor> do_quantiles(const Raw& raw,
                                       const std::vector<double>& levels) const override;
  at::Tensor do_draw_from(const Raw& raw, Seeds seeds) const override;
};

/// `gaussian_mixture_nll`: K Gaussians, each with a logit, a location and a scale.
///
///     log p(y) = log sum_k exp(log softmax(l)_k + log N(y; m_k, s_k))
class GaussianMixtureNll final : public DistributionLoss {
 public:
  explicit GaussianMixtureNll(const Config& config)
      : GaussianMixtureNll(config, config.get_or("components", std::int64_t{3})) {}

 private:
  GaussianMixtureNll(const Config& config, std::int64_t components);

  at::Tensor do_log_likelihood(const Raw& raw, const at::Tensor& target) const override;
  at::Tensor do_mean(const Raw& raw) const override;
  at::Tensor do_variance(const Raw& raw) const override;
  std::vector<at::Tensor> do_quantiles(const Raw& raw,
                                       const std::vector<double>& levels) const override;
  at::Tensor do_draw_from(const Raw& raw, Seeds seeds) const override;

  /// With the components in a last dimension of their own: [..., width, K].
  struct Components;
  Components components_in(const Raw& raw) const;

  std::int64_t components_;
};

}  // namespace treadle::losses
