#include <treadle/testing/support/tiny_data.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <treadle/base/error.h>
#include <treadle/core/data/batch.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/core/data/matrix_rows.h>
#include <treadle/tensor/task_random.h>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace treadle::testing {

Batch noisy_line(std::int64_t count, std::uint64_t seed, double scale) {
  const TaskRandom random(seed);
  const at::Tensor inputs = at::randn({count, 2}, at::kDouble);
  const at::Tensor slopes = at::tensor({2.0, -1.0}, at::kDouble).view({2, 1});
  const at::Tensor noise = at::randn({count, 1}, at::kDouble).div(20);
  const at::Tensor targets = inputs.matmul(slopes).add(0.5).add(noise).mul(scale);
  Batch batch;
  batch.inputs = {inputs};
  batch.targets = batch.original_targets = {targets};
  batch.weights = at::rand({count}, at::kDouble).add(0.5);
  batch.rows = at::arange(count, at::kLong);
  return batch;
}

MatrixRows::Matrices tiny_regression(std::int64_t rows, std::uint64_t seed, at::ScalarType dtype) {
  const Batch line = noisy_line(rows, seed);
  MatrixRows::Matrices matrices;
  matrices.spec.inputs = {{"features", {2}, {{"a", {}}, {"b", {}}}, Role::kFeatures, dtype}};
  matrices.spec.targets = {treadle::number_target("y")};
  matrices.spec.has_weights = true;
  matrices.inputs = {line.inputs[0].to(dtype)};
  matrices.targets = {line.targets[0].to(dtype)};
  matrices.weights = line.weights.to(dtype);
  return matrices;
}

MatrixRows::Matrices tiny_classification(std::int64_t rows, std::int64_t classes,
                                         std::uint64_t seed, at::ScalarType dtype) {
  constexpr double kFullTurn = 6.283185307179586;
  const TaskRandom random(seed);
  MatrixRows::Matrices matrices;
  std::vector<std::string> names;
  for (std::int64_t c = 0; c < classes; ++c)
    names.push_back("corner-" + std::to_string(c));
  matrices.spec.inputs = {{"features", {2}, {{"x", {}}, {"y", {}}}, Role::kFeatures, dtype}};
  matrices.spec.targets = {treadle::class_target("corner", std::move(names))};
  matrices.targets = {at::arange(rows, at::kLong).remainder(classes)};
  const at::Tensor angles =
      matrices.targets[0].to(at::kDouble).mul(kFullTurn / static_cast<double>(classes));
  const at::Tensor noise = at::randn({rows, 2}, at::kDouble).div(5);
  matrices.inputs = {at::stack({angles.cos(), angles.sin()}, 1).add(noise).to(dtype)};
  return matrices;
}

MatrixRows::Matrices tiny_sequences(std::int64_t rows, std::int64_t length, std::uint64_t seed,
                                    at::ScalarType dtype) {
  const TaskRandom random(seed);
  const at::Tensor time = at::arange(rows + length, at::kDouble);
  const at::Tensor values =
      time.mul(0.7).sin().add(at::randn({rows + length}, at::kDouble).div(20)).to(dtype);
  MatrixRows::Matrices matrices;
  matrices.spec.inputs = {{"series", {length, 1}, {}, Role::kFeatures, dtype}};
  matrices.spec.targets = {treadle::number_target("next")};
  matrices.inputs = {values.unfold(0, length, 1).slice(0, 0, rows).unsqueeze(2).contiguous()};
  matrices.targets = {values.slice(0, length).unsqueeze(1).contiguous()};
  matrices.timestamps = time.slice(0, length).contiguous();
  return matrices;
}

MatrixRows::Matrices tiny_texts(std::int64_t rows, std::uint64_t seed, at::ScalarType dtype) {
  constexpr std::int64_t kLongest = 6;
  const TaskRandom random(seed);
  const at::Tensor lengths = at::arange(rows, at::kLong).mul(5).remainder(kLongest).add(1);
  const at::Tensor real = at::arange(kLongest, at::kLong).unsqueeze(0).lt(lengths.unsqueeze(1));
  const at::Tensor tokens = at::randint(9, {rows, kLongest}, at::kLong).mul(real.to(at::kLong));
  MatrixRows::Matrices matrices;
  matrices.spec.inputs = {{"text", {kVaries}, {}, Role::kTokens, at::kLong, 9},
                          {"text.lengths", {}, {}, Role::kLengths, at::kLong, 0, "text"}};
  matrices.spec.targets = {treadle::class_target("parity", {"even", "odd"}, {kVaries}),
                           {"both", TargetKind::kNumbers, {kVaries, 2}}};
  for (TargetSpec& target : matrices.spec.targets)
    target.padded_like = "text";
  matrices.inputs = {tokens, lengths};
  matrices.targets = {tokens.remainder(2),
                      at::stack({tokens, tokens.neg()}, 2).to(dtype).contiguous()};
  return matrices;
}

}  // namespace treadle::testing
