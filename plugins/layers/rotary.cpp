#include "rotary.h"

#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/ops/tensor.h>

#include <treadle/base/error.h>

namespace treadle::layers {
namespace {

constexpr std::array kOfLlama3{"low_freq_factor", "high_freq_factor",
                               "original_max_position_embeddings"};

/// Meta's apply_scaling(); see rotary.h.
double llama3_frequency(double frequency, const Config& config) {
  const auto factor = config.get<double>("factor");
  const auto low = config.get<double>("low_freq_factor");
  const auto high = config.get<double>("high_freq_factor");
  const auto length = config.get<double>("original_max_position_embeddings");
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength < length / high)
    return frequency;
  if (wavelength > length / low)
    return frequency / factor;
  const double smooth = (length / wavelength - low) / (high - low);
  return (1 - smooth) * frequency / factor + smooth * frequency;
}

struct RotaryScaling {
  std::string_view name;
  double (*theta)(double theta, double dim, const Config& config);
  double (*frequency)(double frequency, const Config& config);
};

double same_theta(double theta, double, const Config&) {
  return theta;
}
double same_frequency(double frequency, const Config&) {
  return frequency;
}

constexpr std::array kRotaryScalings{
    RotaryScaling{"none", same_theta, same_frequency},
    RotaryScaling{"linear", same_theta,
                  [](double frequency, const Config& config) {
                    return frequency / config.get<double>("factor");
                  }},
    RotaryScaling{"ntk",
                  [](double theta, double dim, const Config& config) {
                    // A head of two numbers has one frequency, 1, whatever theta is.
                    return dim > 2 ? theta * std::pow(config.get<double>("factor"), dim / (dim - 2))
                                   : theta;
                  },
                  same_frequency},
    RotaryScaling{"llama3", same_theta, llama3_frequency}};

const RotaryScaling& scaling_of(const Config& config) {
  const auto name = config.get_or<std::string>("scaling", "none");
  for (const RotaryScaling& scaling : kRotaryScalings) {
    if (scaling.name == name)
      return scaling;
  }
  TREADLE_EXPECTS(false, "the schema lists the same names");
  return kRotaryScalings.front();
}

}  // namespace

void Rotary::check(const Config& config) {
  const auto scaling = config.get_or<std::string>("scaling", "none");
  if (config.has("dim") && config.get<std::int64_t>("dim") % 2 != 0) {
    config.fail("dim", "must be even, since numbers turn in pairs, got " +
                           std::to_string(config.get<std::int64_t>("dim")));
  }
  const auto expect = [&](const char* key, bool is_wanted) {
    if (config.has(key) == is_wanted)
      return;
    config.fail(is_wanted ? "" : key,
                is_wanted ? "\"scaling\": \"" + scaling + "\" requires \"" + key + "\""
                          : "has no effect with \"scaling\": \"" + scaling + "\"; leave it out");
  };
  expect("factor", scaling != "none");
  for (const char* const key : kOfLlama3)
    expect(key, scaling == "llama3");
  if (scaling == "llama3" &&
      config.get<double>("low_freq_factor") >= config.get<double>("high_freq_factor"))
    config.fail("low_freq_factor", "must be less than \"high_freq_factor\"");
}

Rotary::Rotary(const Config& config, std::int64_t head_dim)
    : dim_(config.get_or<std::int64_t>("dim", head_dim)) {
  if (dim_ > head_dim || dim_ % 2 != 0) {
    throw DataError("turns " + std::to_string(dim_) +
                    " numbers of a head in pairs, but heads have " + std::to_string(head_dim) +
                    "; set \"rotary.dim\" to an even number within it");
  }
  const auto dim = static_cast<double>(dim_);
  const RotaryScaling& scaling = scaling_of(config);
  const double theta = scaling.theta(config.get_or("theta", 10000.0), dim, config);
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < dim_; i += 2) {
    frequencies.push_back(
        scaling.frequency(std::pow(theta, -static_cast<double>(i) / dim), config));
  }
  frequencies_ = DeviceConstant(at::tensor(frequencies, at::kDouble));
}

RotaryAngles Rotary::angles(const at::Tensor& positions, c10::ScalarType dtype) const {
  const at::TensorOptions options(positions.device());
  return rotary_angles(positions, frequencies_.with(options.dtype(at::kDouble)), dtype);
}

}  // namespace treadle::layers
