#include "distribution_loss.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/lgamma.h>
#include <ATen/ops/log.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/special_ndtr.h>
#include <ATen/ops/special_ndtri.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <boost/math/distributions/negative_binomial.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/random/gamma_distribution.hpp>
#include <boost/random/poisson_distribution.hpp>

#include <treadle/base/random.h>
#include <treadle/core/training/scale_parameter.h>

#include "positions.h"
#include "target_check.h"

namespace treadle::losses {
namespace {

constexpr double kLogTwoPi = 1.8378770664093454836;
constexpr double kLogPi = 1.1447298858494001741;
/// The lowest degrees of freedom with a finite variance.
constexpr double kLeastFreedom = 2;

at::Tensor log_normal(const at::Tensor& value, const at::Tensor& location,
                      const at::Tensor& scale) {
  const at::Tensor z = (value - location) / scale;
  return z.square() * -0.5 - scale.log() - kLogTwoPi / 2;
}

/// `quantile` of each element: of two contiguous float64 tensors of one shape.
template <typename Quantile>
at::Tensor each(const at::Tensor& first, const at::Tensor& second, Quantile&& quantile) {
  const at::Tensor a = first.contiguous();
  const at::Tensor b = second.contiguous();
  at::Tensor result = at::empty(a.sizes(), a.options());
  const auto* const from_a = a.data_ptr<double>();
  const auto* const from_b = b.data_ptr<double>();
  auto* const to = result.data_ptr<double>();
  for (std::int64_t i = 0; i < a.numel(); ++i)
    to[i] = quantile(from_a[i], from_b[i]);
  return result;
}

/// One number for each element of a tensor [B, ...] of float64: `draw(bits, element)`. The bits are
/// a function of the row's seed and of the element's place in the row.
template <typename Draw>
at::Tensor drawn(at::IntArrayRef sizes, std::span<const std::uint64_t> seeds, Draw&& draw) {
  at::Tensor result = at::empty(sizes, at::kDouble);
  auto* const to = result.data_ptr<double>();
  const std::int64_t per_row = seeds.empty() ? 0 : result.numel() / result.size(0);
  std::int64_t element = 0;
  for (const std::uint64_t seed : seeds) {
    const RandomStreams streams(seed);
    for (std::int64_t i = 0; i < per_row; ++i, ++element) {
      RandomBits bits = streams.bits("draw", {static_cast<std::uint64_t>(i)});
      to[element] = draw(bits, element);
    }
  }
  return result;
}

at::Tensor standard_normal(at::IntArrayRef sizes, std::span<const std::uint64_t> seeds) {
  return drawn(sizes, seeds, [](RandomBits& bits, std::int64_t) { return bits.normal(); });
}

/// Random bits as Boost.Random takes them.
struct Engine {
  using result_type = std::uint64_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  result_type operator()() { return bits.next(); }

  RandomBits& bits;
};

/// Gamma with mean `shape`.
double gamma(RandomBits& bits, double shape) {
  Engine engine{bits};
  return boost::random::gamma_distribution<double>(shape)(engine);
}

double poisson(RandomBits& bits, double mean) {
  // A standard deviation is then less than the distance of two numbers in float32.
  constexpr double kLargest = 1e15;
  if (!(mean > 0))
    return 0;
  if (mean > kLargest)
    return std::floor(mean);
  Engine engine{bits};
  return static_cast<double>(boost::random::poisson_distribution<std::int64_t>(mean)(engine));
}

}  // namespace

DistributionLoss::DistributionLoss(const Config& config, std::string name,
                                   std::vector<Estimate> parameters)
    : name_(std::move(name)),
      parameters_(std::move(parameters)),
      quantiles_(config.get_or("quantiles", std::vector<double>{0.1, 0.5, 0.9})) {
  if (std::adjacent_find(quantiles_.begin(), quantiles_.end(), std::greater_equal<>()) !=
      quantiles_.end())
    config.fail("quantiles", "must ascend, each greater than the one before");
  for (const double quantile : quantiles_)
    names_.push_back("q" + nlohmann::json(quantile).dump());
}

DistributionLoss::~DistributionLoss() = default;

std::vector<OutputSpec> DistributionLoss::do_outputs_for(const TargetSpec& target) const {
  expect_kind(name_, {TargetKind::kNumbers}, target);
  const auto count = static_cast<std::int64_t>(parameters_.size());
  return {{"parameters", shape_per_position(target, count * target.width()), parameters_}};
}

DistributionLoss::Raw DistributionLoss::parameters_in(const at::Tensor& output) const {
  return output.chunk(static_cast<std::int64_t>(parameters_.size()), -1);
}

LossTerms DistributionLoss::do_forward(const std::vector<at::Tensor>& outputs,
                                       const TargetBatch& target) const {
  const Positions numbers(outputs[0], target);
  const at::Tensor each = do_log_likelihood(parameters_in(numbers.output), numbers.target).neg();
  return {numbers.weights.defined() ? at::mv(each.t(), numbers.weights).sum() : each.sum(),
          do_weight(target)};
}

at::Tensor DistributionLoss::do_weight(const TargetBatch& target) const {
  return weight_of_values(target, target.values().size(-1));
}

Prediction DistributionLoss::do_prediction(const std::vector<at::Tensor>& outputs) const {
  const Raw raw = parameters_in(outputs[0].to(at::kCPU, at::kDouble));
  const auto back = [&](const at::Tensor& values) { return values.to(outputs[0].options()); };
  Prediction prediction;
  prediction.values = back(do_mean(raw));
  const std::vector<at::Tensor> quantiles = do_quantiles(raw, quantiles_);
  for (std::size_t i = 0; i < quantiles.size(); ++i)
    prediction.extras.push_back({names_[i], back(quantiles[i]), quantiles_[i]});
  return prediction;
}

at::Tensor DistributionLoss::do_draw(const std::vector<at::Tensor>& outputs, Seeds seeds) const {
  return do_draw_from(parameters_in(outputs[0].to(at::kDouble)), seeds)
      .to(outputs[0].scalar_type());
}

void* DistributionLoss::do_ask(std::string_view interface_id) {
  if (interface_id == PredictsUncertainty::kInterface)
    return static_cast<PredictsUncertainty*>(this);
  return interface_id == DrawsSamples::kInterface ? static_cast<DrawsSamples*>(this) : nullptr;
}

Prediction::Uncertainty DistributionLoss::do_uncertainty(
    const std::vector<at::Tensor>& outputs) const {
  const Raw raw = parameters_in(outputs[0].to(at::kCPU, at::kDouble));
  return {{}, do_variance(raw).sqrt().to(outputs[0].options()), {}};
}

at::Tensor GaussianNll::do_log_likelihood(const Raw& raw, const at::Tensor& target) const {
  return log_normal(target, raw[0], scale_of(raw[1]));
}

at::Tensor GaussianNll::do_mean(const Raw& raw) const {
  return raw[0];
}

at::Tensor GaussianNll::do_variance(const Raw& raw) const {
  return scale_of(raw[1]).square();
}

std::vector<at::Tensor> GaussianNll::do_quantiles(const Raw& raw,
                                                  const std::vector<double>& levels) const {
  const at::Tensor scale = scale_of(raw[1]);
  const at::Tensor z = at::special_ndtri(at::tensor(levels, at::kDouble));
  std::vector<at::Tensor> quantiles;
  for (std::size_t i = 0; i < levels.size(); ++i)
    quantiles.push_back(raw[0] + scale * z[static_cast<std::int64_t>(i)]);
  return quantiles;
}

at::Tensor GaussianNll::do_draw_from(const Raw& raw, Seeds seeds) const {
  return raw[0] + scale_of(raw[1]) * standard_normal(raw[0].sizes(), seeds);
}

at::Tensor StudentTNll::do_log_likelihood(const Raw& raw, const at::Tensor& target) const {
  const at::Tensor scale = scale_of(raw[1]);
  const at::Tensor v = scale_of(raw[2]) + kLeastFreedom;
  const at::Tensor z = (target - raw[0]) / scale;
  const at::Tensor half = (v + 1) / 2;
  return half.lgamma() - (v / 2).lgamma() - (v.log() + kLogPi) / 2 - scale.log() -
         half * at::log1p(z.square() / v);
}

at::Tensor StudentTNll::do_mean(const Raw& raw) const {
  return raw[0];
}

// s^2 v / (v - 2)
at::Tensor StudentTNll::do_variance(const Raw& raw) const {
  const at::Tensor above_two = scale_of(raw[2]);
  return scale_of(raw[1]).square() * (1 + kLeastFreedom / above_two);
}

std::vector<at::Tensor> StudentTNll::do_quantiles(const Raw& raw,
                                                  const std::vector<double>& levels) const {
  const at::Tensor scale = scale_of(raw[1]);
  const at::Tensor v = scale_of(raw[2]) + kLeastFreedom;
  std::vector<at::Tensor> quantiles;
  for (const double level : levels) {
    const at::Tensor z = each(v, v, [level](double freedom, double) {
      return std::isfinite(freedom) ? boost::math::quantile(boost::math::students_t(freedom), level)
                                    : std::nan("");
    });
    quantiles.push_back(raw[0] + scale * z);
  }
  return quantiles;
}

// A normal number over the root of an independent chi-squared one by its degrees of freedom; that
// is twice a gamma of half of them.
at::Tensor StudentTNll::do_draw_from(const Raw& raw, Seeds seeds) const {
  const at::Tensor freedom = (scale_of(raw[2]) + kLeastFreedom).contiguous();
  const auto* const v = freedom.data_ptr<double>();
  const at::Tensor z = drawn(freedom.sizes(), seeds, [v](RandomBits& bits, std::int64_t element) {
    const double half = v[element] / 2;
    if (!std::isfinite(half))
      return std::nan("");
    const double normal = bits.normal();
    return normal * std::sqrt(half / gamma(bits, half));
  });
  return raw[0] + scale_of(raw[1]) * z;
}

at::Tensor NegativeBinomialNll::do_log_likelihood(const Raw& raw, const at::Tensor& target) const {
  const at::Tensor mean = scale_of(raw[0]);
  const at::Tensor dispersion = scale_of(raw[1]);
  const at::Tensor r = dispersion.reciprocal();
  const at::Tensor product = dispersion * mean;
  return (target + r).lgamma() - r.lgamma() - (target + 1).lgamma() + target * product.log() -
         (target + r) * at::log1p(product);
}

at::Tensor NegativeBinomialNll::do_mean(const Raw& raw) const {
  return scale_of(raw[0]);
}

at::Tensor NegativeBinomialNll::do_variance(const Raw& raw) const {
  const at::Tensor mean = scale_of(raw[0]);
  return mean + scale_of(raw[1]) * mean.square();
}

std::vector<at::Tensor> NegativeBinomialNll::do_quantiles(const Raw& raw,
                                                          const std::vector<double>& levels) const {
  // The smallest count whose distribution function reaches the level, as SciPy has it.
  using Rounding = boost::math::policies::policy<
      boost::math::policies::discrete_quantile<boost::math::policies::integer_round_up>>;
  const at::Tensor mean = scale_of(raw[0]);
  const at::Tensor dispersion = scale_of(raw[1]);
  std::vector<at::Tensor> quantiles;
  for (const double level : levels) {
    quantiles.push_back(each(mean, dispersion, [level](double m, double a) {
      if (!std::isfinite(m) || !std::isfinite(a))
        return std::nan("");
      const boost::math::negative_binomial_distribution<double, Rounding> counts(1 / a,
                                                                                 1 / (1 + a * m));
      return boost::math::quantile(counts, level);
    }));
  }
  return quantiles;
}

// A Poisson number whose mean is a gamma of shape r = 1 / a and mean m.
at::Tensor NegativeBinomialNll::do_draw_from(const Raw& raw, Seeds seeds) const {
  const at::Tensor means = scale_of(raw[0]).contiguous();
  const at::Tensor dispersions = scale_of(raw[1]).contiguous();
  const auto* const m = means.data_ptr<double>();
  const auto* const a = dispersions.data_ptr<double>();
  return drawn(means.sizes(), seeds, [m, a](RandomBits& bits, std::int64_t element) {
    if (!std::isfinite(m[element]) || !std::isfinite(a[element]))
      return std::nan("");
    const double rate = gamma(bits, 1 / a[element]) * a[element] * m[element];
    return poisson(bits, rate);
  });
}

namespace {

/// Logits, then locations, then scales.
std::vector<Estimate> mixture_of(std::int64_t components) {
  std::vector<Estimate> parameters;
  for (const Estimate each : {Estimate::kDimensionless, Estimate::kLocation, Estimate::kScale})
    parameters.insert(parameters.end(), static_cast<std::size_t>(components), each);
  return parameters;
}

}  // namespace

GaussianMixtureNll::GaussianMixtureNll(const Config& config, std::int64_t components)
    : DistributionLoss(config, "gaussian_mixture_nll", mixture_of(components)),
      components_(components) {}

struct GaussianMixtureNll::Components {
  at::Tensor log_weights;
  at::Tensor locations;
  at::Tensor scales;
};

GaussianMixtureNll::Components GaussianMixtureNll::components_in(const Raw& raw) const {
  const auto stacked = [&](std::int64_t parameter) {
    const auto begin = raw.begin() + parameter * components_;
    return at::stack(std::vector<at::Tensor>(begin, begin + components_), -1);
  };
  return {at::log_softmax(stacked(0), -1), stacked(1), scale_of(stacked(2))};
}

at::Tensor GaussianMixtureNll::do_log_likelihood(const Raw& raw, const at::Tensor& target) const {
  const Components mixture = components_in(raw);
  return at::logsumexp(
      mixture.log_weights + log_normal(target.unsqueeze(-1), mixture.locations, mixture.scales),
      {-1});
}

at::Tensor GaussianMixtureNll::do_mean(const Raw& raw) const {
  const Components mixture = components_in(raw);
  return (mixture.log_weights.exp() * mixture.locations).sum(-1);
}

at::Tensor GaussianMixtureNll::do_variance(const Raw& raw) const {
  const Components mixture = components_in(raw);
  const at::Tensor weights = mixture.log_weights.exp();
  const at::Tensor mean = (weights * mixture.locations).sum(-1, /*keepdim=*/true);
  return (weights * (mixture.scales.square() + (mixture.locations - mean).square())).sum(-1);
}

// A quantile of the mixture lies between the least and the largest of its components', so bisection
// begins there.
std::vector<at::Tensor> GaussianMixtureNll::do_quantiles(const Raw& raw,
                                                         const std::vector<double>& levels) const {
  constexpr int kHalvings = 60;
  const Components mixture = components_in(raw);
  const at::Tensor weights = mixture.log_weights.exp();
  const at::Tensor z = at::special_ndtri(at::tensor(levels, at::kDouble));
  std::vector<at::Tensor> quantiles;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const at::Tensor each = mixture.locations + mixture.scales * z[static_cast<std::int64_t>(i)];
    at::Tensor low = each.amin({-1});
    at::Tensor high = each.amax({-1});
    for (int halving = 0; halving < kHalvings; ++halving) {
      const at::Tensor middle = (low + high) / 2;
      const at::Tensor below =
          (weights * at::special_ndtr((middle.unsqueeze(-1) - mixture.locations) / mixture.scales))
              .sum(-1)
              .lt(levels[i]);
      low = at::where(below, middle, low);
      high = at::where(below, high, middle);
    }
    quantiles.push_back((low + high) / 2);
  }
  return quantiles;
}

at::Tensor GaussianMixtureNll::do_draw_from(const Raw& raw, Seeds seeds) const {
  const Components mixture = components_in(raw);
  const at::Tensor weights = mixture.log_weights.exp().contiguous();
  const at::Tensor locations = mixture.locations.contiguous();
  const at::Tensor scales = mixture.scales.contiguous();
  const auto* const w = weights.data_ptr<double>();
  const auto* const m = locations.data_ptr<double>();
  const auto* const s = scales.data_ptr<double>();
  return drawn(raw[0].sizes(), seeds, [&](RandomBits& bits, std::int64_t element) {
    const std::int64_t first = element * components_;
    std::int64_t chosen = first;
    double left = bits.uniform() - w[first];
    // The weights add up to 1 but for rounding: the last component takes the rest.
    while (left >= 0 && chosen + 1 < first + components_)
      left -= w[++chosen];
    return m[chosen] + s[chosen] * bits.normal();
  });
}

}  // namespace treadle::losses
