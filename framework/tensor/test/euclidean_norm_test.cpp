#include <treadle/tensor/euclidean_norm.h>

#include <cmath>
#include <limits>

#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <treadle/tensor/task_random.h>

namespace treadle {
namespace {

// Independent of it: libtorch's, of numbers that need no care.
TEST(EuclideanNorm, IsThatOfAnyScale) {
  const TaskRandom random(4);
  for (const std::int64_t count : {1, 7, 1000, 100'003}) {
    const at::Tensor plain = at::randn({count}, at::kDouble);
    const double norm = at::linalg_vector_norm(plain, 2).item<double>();
    for (const int exponent : {-120, -60, 0, 60, 120}) {
      const double scale = std::ldexp(1.0, exponent);
      EXPECT_NEAR(euclidean_norm(plain.to(at::kFloat).mul(scale)) / (norm * scale), 1, 1e-6)
          << count << " float32 of about 2^" << exponent;
    }
    for (const int exponent : {-1000, -500, 0, 500, 1000}) {
      const double scale = std::ldexp(1.0, exponent);
      EXPECT_NEAR(euclidean_norm(plain.mul(scale)) / scale / norm, 1, 1e-13)
          << count << " float64 of about 2^" << exponent;
    }
  }
}

TEST(EuclideanNorm, IsTheSameForAnyNumberOfThreads) {
  const TaskRandom random(4);
  const at::Tensor values = at::randn({3'000'001});
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const double alone = euclidean_norm(values);
  at::set_num_threads(3);
  EXPECT_EQ(euclidean_norm(values), alone);
  at::set_num_threads(before);
}

TEST(EuclideanNorm, IsFiniteOnlyWhereAllElementsAre) {
  at::Tensor values = at::full({100}, 1.0);
  const double infinity = std::numeric_limits<double>::infinity();
  values[70] = infinity;
  EXPECT_EQ(euclidean_norm(values), infinity);
  EXPECT_EQ(euclidean_norm(values.to(at::kDouble)), infinity);
  values[3] = std::nan("");
  EXPECT_TRUE(std::isnan(euclidean_norm(values)));
  EXPECT_TRUE(std::isnan(euclidean_norm(values.to(at::kDouble))));
  EXPECT_EQ(euclidean_norm(at::zeros({5})), 0);
  EXPECT_EQ(euclidean_norm(at::zeros({0}, at::kDouble)), 0);
  const at::Tensor largest = at::full({100}, std::numeric_limits<float>::max());
  EXPECT_NEAR(euclidean_norm(largest) / (10.0 * std::numeric_limits<float>::max()), 1, 1e-12);
}

}  // namespace
}  // namespace treadle
