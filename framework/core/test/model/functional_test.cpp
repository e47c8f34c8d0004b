// Layers as functions, beside their formulas element by element in float64.
#include <treadle/core/model/functional.h>

#include <cmath>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <treadle/tensor/task_random.h>

namespace treadle {
namespace {

double at_of(const at::Tensor& tensor, std::initializer_list<std::int64_t> index) {
  at::Tensor here = tensor;
  for (const std::int64_t i : index)
    here = here[i];
  return here.item<double>();
}

TEST(Functional, RmsNormIsItsFormula) {
  const TaskRandom random(1);
  const at::Tensor x = at::randn({3, 5}, at::kDouble);
  const at::Tensor weight = at::randn({5}, at::kDouble);
  const at::Tensor got = rms_norm(x, weight, 1e-3);
  for (std::int64_t row = 0; row < 3; ++row) {
    double squares = 0;
    for (std::int64_t i = 0; i < 5; ++i)
      squares += at_of(x, {row, i}) * at_of(x, {row, i});
    for (std::int64_t i = 0; i < 5; ++i) {
      EXPECT_NEAR(at_of(got, {row, i}),
                  at_of(x, {row, i}) / std::sqrt(squares / 5 + 1e-3) * at_of(weight, {i}), 1e-12);
    }
  }
}

TEST(Functional, SwigluIsItsFormula) {
  const TaskRandom random(2);
  const auto map = [](std::int64_t out, std::int64_t in) {
    return at::randn({out, in}, at::kDouble);
  };
  const SwigluWeights weights{map(4, 3), map(4, 3), map(2, 4), at::randn({4}, at::kDouble), {}, {}};
  const at::Tensor x = at::randn({3}, at::kDouble);
  const at::Tensor got = swiglu(x.unsqueeze(0), weights)[0];
  for (std::int64_t out = 0; out < 2; ++out) {
    double sum = 0;
    for (std::int64_t h = 0; h < 4; ++h) {
      double gate = at_of(weights.gate_bias, {h});
      double up = 0;
      for (std::int64_t i = 0; i < 3; ++i) {
        gate += at_of(weights.gate, {h, i}) * at_of(x, {i});
        up += at_of(weights.up, {h, i}) * at_of(x, {i});
      }
      sum += at_of(weights.down, {out, h}) * gate / (1 + std::exp(-gate)) * up;
    }
    EXPECT_NEAR(at_of(got, {out}), sum, 1e-12);
  }
}

/// Number `i` of a head of `dim` at position `p`.
double turned(const at::Tensor& head, std::int64_t p, std::int64_t i) {
  const std::int64_t dim = head.size(-1);
  const std::int64_t half = dim / 2;
  const std::int64_t pair = i % half;
  const double angle = static_cast<double>(p) *
                       std::pow(100.0, -2.0 * static_cast<double>(pair) / static_cast<double>(dim));
  const double a = at_of(head, {pair});
  const double b = at_of(head, {pair + half});
  return i < half ? a * std::cos(angle) - b * std::sin(angle)
                  : b * std::cos(angle) + a * std::sin(angle);
}

TEST(Functional, RotaryAttentionIsItsFormula) {
  const TaskRandom random(3);
  const at::Tensor q = at::randn({2, 4, 5, 6}, at::kDouble);
  const at::Tensor k = at::randn({2, 2, 5, 6}, at::kDouble);
  const at::Tensor v = at::randn({2, 2, 5, 6}, at::kDouble);
  for (const bool is_causal : {true, false}) {
    const at::Tensor got = rotary_attention(q, k, v, is_causal, 100);
    ASSERT_EQ(got.sizes(), q.sizes());
    for (std::int64_t head = 0; head < 4; ++head) {
      for (std::int64_t t = 0; t < 5; ++t) {
        const std::int64_t seen = is_causal ? t + 1 : 5;
        std::vector<double> weights;
        double total = 0;
        for (std::int64_t s = 0; s < seen; ++s) {
          double score = 0;
          for (std::int64_t i = 0; i < 6; ++i)
            score += turned(q[1][head][t], t, i) * turned(k[1][head / 2][s], s, i);
          weights.push_back(std::exp(score / std::sqrt(6.0)));
          total += weights.back();
        }
        for (std::int64_t i = 0; i < 6; ++i) {
          double mixed = 0;
          for (std::int64_t s = 0; s < seen; ++s)
            mixed += weights[static_cast<std::size_t>(s)] / total * at_of(v[1][head / 2][s], {i});
          EXPECT_NEAR(at_of(got, {1, head, t, i}), mixed, 1e-10) << head << " " << t;
        }
      }
    }
  }
}

TEST(Functional, RotaryLeavesNumbersBehindItsDimension) {
  const at::Tensor heads = at::randn({1, 1, 3, 6}, at::kDouble);
  const RotaryAngles angles = rotary_angles(at::arange(3), rotary_frequencies(4), at::kDouble);
  const at::Tensor got = apply_rotary(heads, angles);
  EXPECT_TRUE(at::equal(got.narrow(-1, 4, 2), heads.narrow(-1, 4, 2)));
  EXPECT_TRUE(at::equal(got.select(2, 0), heads.select(2, 0))) << "position 0 does not turn";
}

}  // namespace
}  // namespace treadle
