#include "initialisers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include <c10/core/GradMode.h>
#include <torch/nn/init.h>

#include <treadle/base/error.h>

namespace treadle::layers {
namespace {

struct Fans {
  double in;
  double out;
};

Fans fans_of(const at::Tensor& weight) {
  std::int64_t field = 1;
  for (std::int64_t i = 2; i < weight.dim(); ++i)
    field *= weight.size(i);
  return {static_cast<double>(weight.size(1) * field), static_cast<double>(weight.size(0) * field)};
}

// torch.nn.Linear and Conv: Kaiming's uniform rule with a = sqrt(5), in the order of
// torch.nn.init's operations, so that the bits are PyTorch's.
void pytorch_weight(at::Tensor& weight, double) {
  const double gain = std::sqrt(2.0 / (1 + std::pow(std::sqrt(5.0), 2)));
  const double spread = gain / std::sqrt(fans_of(weight).in);
  const double bound = std::sqrt(3.0) * spread;
  weight.uniform_(-bound, bound);
}
void pytorch_bias(at::Tensor& bias, std::int64_t fan_in) {
  const double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
  bias.uniform_(-bound, bound);
}

// He et al., "Delving Deep into Rectifiers" (2015), gain for ReLU.
void kaiming_uniform(at::Tensor& weight, double) {
  const double bound = std::sqrt(6 / fans_of(weight).in);
  weight.uniform_(-bound, bound);
}
void kaiming_normal(at::Tensor& weight, double) {
  weight.normal_(0, std::sqrt(2 / fans_of(weight).in));
}

// Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks"
// (2010).
void xavier_uniform(at::Tensor& weight, double) {
  const Fans fans = fans_of(weight);
  const double bound = std::sqrt(6 / (fans.in + fans.out));
  weight.uniform_(-bound, bound);
}
void xavier_normal(at::Tensor& weight, double) {
  const Fans fans = fans_of(weight);
  weight.normal_(0, std::sqrt(2 / (fans.in + fans.out)));
}

// Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear neural
// networks" (2013).
void orthogonal(at::Tensor& weight, double) {
  torch::nn::init::orthogonal_(weight);
}
void zeros(at::Tensor& weight, double) {
  weight.zero_();
}
// Radford et al., "Language Models are Unsupervised Multitask Learners" (2019), and BERT.
void normal(at::Tensor& weight, double std) {
  weight.normal_(0, std);
}

void narrow_bias(at::Tensor& bias, std::int64_t fan_in) {
  const double bound = 1 / static_cast<double>(std::max<std::int64_t>(fan_in, 1));
  bias.uniform_(-bound, bound);
}
void zero_bias(at::Tensor& bias, std::int64_t) {
  bias.zero_();
}

constexpr std::array kInitialisers{
    Initialiser{"pytorch", pytorch_weight, pytorch_bias},
    Initialiser{"kaiming", kaiming_uniform, narrow_bias},
    Initialiser{"kaiming_uniform", kaiming_uniform, zero_bias},
    Initialiser{"kaiming_normal", kaiming_normal, zero_bias},
    Initialiser{"xavier_uniform", xavier_uniform, zero_bias},
    Initialiser{"xavier_normal", xavier_normal, zero_bias},
    Initialiser{"orthogonal", orthogonal, zero_bias},
    Initialiser{"zeros", zeros, zero_bias},
    Initialiser{"normal", normal, zero_bias},
};

Initialiser with_std(const Config& config, const char* key, Initialiser made) {
  if (const auto std = config.find<double>(key)) {
    if (made.weight != normal)
      config.fail(key,
                  "has no effect: \"init\" is \"" + std::string(made.name) + "\", not \"normal\"");
    made.std = *std;
  }
  return made;
}

}  // namespace

Initialiser initialiser_of(const Config& config) {
  const auto name = config.get<std::string>("init");
  const auto found = std::find_if(kInitialisers.begin(), kInitialisers.end(),
                                  [&](const Initialiser& known) { return known.name == name; });
  TREADLE_EXPECTS(found != kInitialisers.end(), "no initialiser is called " + name);
  return with_std(config, "init_std", *found);
}

Initialiser residual_initialiser_of(const Config& config) {
  return with_std(config, "residual_init_std", initialiser_of(config));
}

void initialise(const Initialiser& initialiser, at::Tensor& weight, at::Tensor& bias) {
  const at::NoGradGuard no_gradients;
  initialiser.weight(weight, initialiser.std);
  if (bias.defined())
    initialiser.bias(bias, static_cast<std::int64_t>(fans_of(weight).in));
}

}  // namespace treadle::layers
