#include <treadle/core/training/scale_parameter.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace treadle {
namespace {

// python3 -c "import numpy as np; print(np.logaddexp(0, np.array([-30., -3, 0, 2, 50])) + 1e-6)"
TEST(ScaleParameter, IsSoftplusAndALeastScale) {
  const at::Tensor scales = scale_of(at::tensor({-30.0, -3.0, 0.0, 2.0, 50.0}, at::kDouble));

  EXPECT_TRUE(at::allclose(scales,
                           at::tensor({1.0000000935762297e-06, 0.04858835157374206,
                                       0.6931481805599453, 2.126929011042973, 50.000001},
                                      at::kDouble),
                           1e-12, 0));
}

TEST(ScaleParameter, HasAnInverse) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const at::Tensor scales = at::tensor({1e-5, 1e-3, 0.5, 1.0, 30.0, 5e4}, dtype);

    EXPECT_TRUE(at::allclose(scale_of(output_for_scale(scales)), scales, 1e-6, 0)) << dtype;
  }
}

// Of the function and its inverse the slope is 1, wherever it is taken.
TEST(ScaleParameter, HasFiniteSlopes) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const at::Tensor scales =
        at::tensor({1.1e-6, 1e-3, 1.0, 1e6}, dtype).detach().requires_grad_(true);

    scale_of(output_for_scale(scales)).sum().backward();

    EXPECT_TRUE(at::allclose(scales.grad(), at::ones_like(scales), 1e-4, 0)) << scales.grad();
  }
}

TEST(ScaleParameter, CountsScalesBelowTheLeastAsTheLeast) {
  const at::Tensor scales =
      at::tensor({0.0, 1e-7, kLeastScale}, at::kDouble).detach().requires_grad_(true);

  const at::Tensor outputs = output_for_scale(scales);
  outputs.sum().backward();

  EXPECT_TRUE(at::isfinite(outputs).all().item<bool>());
  EXPECT_TRUE(at::allclose(scale_of(outputs), at::full_like(outputs, kLeastScale), 1e-9, 0));
  EXPECT_TRUE(at::isfinite(scales.grad()).all().item<bool>());
  EXPECT_EQ(scales.grad()[1].item<double>(), 0);
}

}  // namespace
}  // namespace treadle
