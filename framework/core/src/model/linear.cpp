#include <treadle/core/model/linear.h>

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/ivalue.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/where.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <treadle/base/error.h>
#include <treadle/core/precision/float8_scales.h>
#include <treadle/tensor/autocast.h>

#include "precision/float8_format.h"

namespace treadle {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// A matrix of float8 numbers, and 1 / scale: of all, [], or of each row, [rows, 1].
struct Rounded {
  at::Tensor numbers;
  at::Tensor inverse_scale;

  Rounded t() const { return {numbers.t(), inverse_scale}; }
};

/// a bᵀ
at::Tensor product(const Rounded& a, const Rounded& b) {
  return a.numbers.mm(b.numbers.t()).mul_(a.inverse_scale).mul_(b.inverse_scale.t());
}

/// How the products of one call are rounded.
struct Rounding : torch::CustomClassHolder {
  Rounding(Float8Use use, std::int64_t place) : use(std::move(use)), place(place) {}

  bool is_rowwise() const { return use.scaling == Float8Scaling::kRowwise; }

  /// `values` [rows, n], of float32 or float64, which a product sums along n.
  Rounded round(Float8Operand operand, const at::Tensor& values) const {
    at::Tensor magnitudes = values.abs();
    const at::Tensor largest =
        (is_rowwise() ? magnitudes.amax(1, /*keepdim=*/true) : magnitudes.amax()).to(at::kFloat);
    at::Tensor scale = float8_scale(operand, largest);
    if (use.scales != nullptr) {
      if (use.records)
        use.scales->record(operand, place, largest);
      const at::Tensor of_before = use.scales->scale(operand, place);
      scale = at::where(of_before.gt(0), of_before, scale);
    }
    const at::Tensor numbers = rounded_to(float8_format(operand), values.mul(scale).to(at::kFloat));
    return {numbers.to(values.scalar_type()), scale.reciprocal()};
  }

  const Float8Use use;
  const std::int64_t place;
};

class Float8Product : public torch::autograd::Function<Float8Product> {
 public:
  /// x [rows, in], weight [out, in], of one dtype. y [rows, out].
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            c10::intrusive_ptr<Rounding> rounding) {
    const Rounded rounded_x = rounding->round(Float8Operand::kInput, x);
    const Rounded rounded_weight = rounding->round(Float8Operand::kWeight, weight);
    // Rounded again in backward, where nothing has changed: they would take memory until then.
    context->save_for_backward({x, weight});
    context->saved_data["rounding"] = c10::IValue::make_capsule(std::move(rounding));
    return product(rounded_x, rounded_weight);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    if (at::GradMode::is_enabled()) {
      throw TrainingError(
          "a product in float8 has no gradients of gradients; choose another \"precision\"");
    }
    const AutocastScope no_autocast{Autocast()};
    const auto rounding =
        c10::static_intrusive_pointer_cast<Rounding>(context->saved_data["rounding"].toCapsule());
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor& dy = gradients[0];
    const auto round_both_ways = [&](Float8Operand operand, const at::Tensor& values) {
      const Rounded rows = rounding->round(operand, values);
      return std::pair(rows,
                       rounding->is_rowwise() ? rounding->round(operand, values.t()) : rows.t());
    };
    const auto [by_row, by_column] = round_both_ways(Float8Operand::kGradient, dy);
    variable_list result(3);
    if (context->needs_input_grad(0)) {
      result[0] = product(by_row, round_both_ways(Float8Operand::kWeight, weight).second);
    }
    if (context->needs_input_grad(1))
      result[1] = product(by_column, round_both_ways(Float8Operand::kInput, x).second);
    return result;
  }
};

at::Tensor rounded_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                          const Float8Use& use, std::int64_t place) {
  if (input.numel() == 0 || weight.numel() == 0)
    return at::linear(input, weight, bias);  // no number is the largest
  const AutocastScope no_autocast{Autocast()};
  const c10::ScalarType computed = c10::promoteTypes(weight.scalar_type(), at::kFloat);
  std::vector<std::int64_t> sizes = input.sizes().vec();
  sizes.back() = weight.size(0);
  at::Tensor result =
      Float8Product::apply(input.to(computed).reshape({-1, input.size(-1)}), weight.to(computed),
                           c10::make_intrusive<Rounding>(use, place))
          .view(sizes);
  if (bias.defined())
    result = result.add(bias.to(computed));
  return result.to(weight.scalar_type());
}

}  // namespace

at::Tensor linear_in_precision(const at::Tensor& input, const at::Tensor& weight,
                               const at::Tensor& bias) {
  const std::optional<Float8Use>& use = Float8Scope::of_this_thread();
  if (!use)
    return at::linear(input, weight, bias);
  if (use->scales == nullptr)
    return rounded_linear(input, weight, bias, *use, 0);
  if (const auto place = use->scales->place_of(weight))
    return rounded_linear(input, weight, bias, *use, *place);
  return rounded_linear(input, weight, bias, {Float8Scaling::kTensorwise}, 0);
}

at::Tensor float8_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                         Float8Scaling scaling) {
  TREADLE_EXPECTS(scaling != Float8Scaling::kDelayed, "scales of earlier steps belong to a model");
  return rounded_linear(input, weight, bias, {scaling}, 0);
}

}  // namespace treadle
