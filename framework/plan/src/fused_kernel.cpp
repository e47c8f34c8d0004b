#include <treadle/plan/fused_kernel.h>

#include <algorithm>
#include <array>
#include <utility>

#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/leaky_relu_backward.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/threshold_backward.h>
#include <c10/util/SmallVector.h>

#include <treadle/base/error.h>

namespace treadle::plan {
namespace {

// Elements that all steps work on before the next ones. The intermediate blocks of a kernel of
// kMaxSteps take 24 kB in float32: they stay in the cache.
constexpr std::int64_t kBlock = 512;

struct Rule {
  const char* name;
  bool takes_two;
};
constexpr std::array kRules{
    Rule{"add", true},           Rule{"subtract", true},
    Rule{"multiply", true},      Rule{"scale", false},
    Rule{"divide", false},       Rule{"shift", false},
    Rule{"relu", false},         Rule{"leaky_relu", false},
    Rule{"relu_gradient", true}, Rule{"leaky_relu_gradient", true},
};

const Rule& entry(ElementwiseRule rule) {
  return kRules[static_cast<std::size_t>(rule)];
}

/// compute(a[i], b[i]) for a block. `out` may be `a` or `b`, but does not overlap them otherwise:
/// hence ivdep, without which GCC would not vectorize. The build contracts no a * b + c to one
/// rounding
/// (-ffp-contract=off).
template <typename T, typename Compute>
void each(const T* a, const T* b, T* out, std::int64_t count, Compute compute) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i)
    out[i] = compute(a[i], b[i]);
}

/// Unary rules ignore `b`.
template <typename T>
void run_block(ElementwiseRule rule, double number, const T* a, const T* b, T* out,
               std::int64_t count) {
  const auto c = static_cast<T>(number);
  constexpr T kZero = 0;
  switch (rule) {
    case ElementwiseRule::kAdd:
      return each(a, b, out, count, [](T x, T y) { return x + y; });
    case ElementwiseRule::kSubtract:
      return each(a, b, out, count, [](T x, T y) { return x - y; });
    case ElementwiseRule::kMultiply:
      return each(a, b, out, count, [](T x, T y) { return x * y; });
    case ElementwiseRule::kScale:
      return each(a, a, out, count, [c](T x, T) { return x * c; });
    case ElementwiseRule::kDivide:
      return each(a, a, out, count, [c](T x, T) { return x / c; });
    case ElementwiseRule::kShift:
      return each(a, a, out, count, [c](T x, T) { return x + c; });
    case ElementwiseRule::kRelu:
      // What is not a number stays so, and -0 stays -0, as in libtorch.
      return each(a, a, out, count, [](T x, T) { return x < kZero ? kZero : x; });
    case ElementwiseRule::kLeakyRelu:
      return each(a, a, out, count, [c](T x, T) { return x > kZero ? x : x * c; });
    case ElementwiseRule::kReluGradient:
      return each(a, b, out, count, [](T x, T y) { return y <= kZero ? kZero : x; });
    case ElementwiseRule::kLeakyReluGradient:
      return each(a, b, out, count, [c](T x, T y) { return y > kZero ? x : x * c; });
  }
}

template <typename T>
void run_blocks(const std::vector<FusedKernel::Step>& steps, std::span<const at::Tensor> given,
                std::span<at::Tensor> wanted) {
  c10::SmallVector<const T*, 8> from;
  for (const at::Tensor& tensor : given)
    from.push_back(tensor.data_ptr<T>());
  c10::SmallVector<T*, 8> to;
  for (at::Tensor& tensor : wanted)
    to.push_back(tensor.data_ptr<T>());

  alignas(64) std::array<std::array<T, kBlock>, FusedKernel::kMaxSteps> between;
  std::array<const T*, FusedKernel::kMaxSteps> results{};
  const std::int64_t size = wanted.front().numel();
  for (std::int64_t begin = 0; begin < size; begin += kBlock) {
    const std::int64_t count = std::min(kBlock, size - begin);
    std::size_t written = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const FusedKernel::Step& step = steps[i];
      const auto operand = [&](const FusedKernel::Operand& where) {
        return where.is_step ? results[where.index] : from[where.index] + begin;
      };
      T* const out = step.is_wanted ? to[written++] + begin : between[i].data();
      const T* const a = operand(step.a);
      const T* const b = takes_two(step.rule) ? operand(step.b) : a;
      run_block<T>(step.rule, step.number, a, b, out, count);
      results[i] = out;
    }
  }
}

at::Tensor run_step(const FusedKernel::Step& step, const at::Tensor& a, const at::Tensor& b) {
  switch (step.rule) {
    case ElementwiseRule::kAdd:
      return at::add(a, b);
    case ElementwiseRule::kSubtract:
      return at::sub(a, b);
    case ElementwiseRule::kMultiply:
      return at::mul(a, b);
    case ElementwiseRule::kScale:
      return at::mul(a, step.number);
    case ElementwiseRule::kDivide:
      return at::div(a, step.number);
    case ElementwiseRule::kShift:
      return at::add(a, step.number);
    case ElementwiseRule::kRelu:
      return at::relu(a);
    case ElementwiseRule::kLeakyRelu:
      return at::leaky_relu(a, step.number);
    case ElementwiseRule::kReluGradient:
      return at::threshold_backward(a, b, 0);
    case ElementwiseRule::kLeakyReluGradient:
      return at::leaky_relu_backward(a, b, step.number, /*self_is_result=*/false);
  }
  throw UsageError("an element-wise step without a rule");
}

/// Other devices and dtypes, and what does not lie in one piece: step by step, with libtorch's
/// kernels.
void run_steps(const std::vector<FusedKernel::Step>& steps, std::span<const at::Tensor> given,
               std::span<at::Tensor> wanted) {
  std::vector<at::Tensor> results;
  std::size_t written = 0;
  for (const FusedKernel::Step& step : steps) {
    const auto operand = [&](const FusedKernel::Operand& where) -> const at::Tensor& {
      return where.is_step ? results[where.index] : given[where.index];
    };
    results.push_back(
        run_step(step, operand(step.a), takes_two(step.rule) ? operand(step.b) : at::Tensor()));
    if (step.is_wanted)
      wanted[written++].copy_(results.back());
  }
}

}  // namespace

ElementwiseRule rule_of(ElementwiseOp op) {
  // The same names in the same order.
  return static_cast<ElementwiseRule>(op);
}

const char* name_of(ElementwiseRule rule) {
  return entry(rule).name;
}

bool takes_two(ElementwiseRule rule) {
  return entry(rule).takes_two;
}

bool gradient_reads_inputs(ElementwiseRule rule) {
  return rule == ElementwiseRule::kMultiply || rule == ElementwiseRule::kLeakyRelu;
}

void FusedKernel::run(std::span<const at::Tensor> given, std::span<at::Tensor> wanted) const {
  const c10::ScalarType dtype = wanted.front().scalar_type();
  const bool lies_well = std::all_of(given.begin(), given.end(), [&](const at::Tensor& tensor) {
    return tensor.is_contiguous() && tensor.device().is_cpu() && tensor.scalar_type() == dtype;
  });
  if (lies_well && dtype == at::kFloat)
    return run_blocks<float>(steps_, given, wanted);
  if (lies_well && dtype == at::kDouble)
    return run_blocks<double>(steps_, given, wanted);
  run_steps(steps_, given, wanted);
}

}  // namespace treadle::plan
