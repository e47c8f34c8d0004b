#include "shapes.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/div.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/upsample_bilinear2d_backward.h>
#include <ATen/ops/upsample_nearest1d.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <ATen/ops/upsample_nearest2d_backward.h>

#include <treadle/base/error.h>
#include <treadle/core/model/abilities/takes_indices.h>
#include <treadle/core/model/layer.h>
#include <treadle/plan/lowerable.h>
#include <treadle/plan/op.h>
#include <treadle/plan/ops.h>

#include "padding.h"
#include "stream.h"

namespace treadle::layers {
namespace {

constexpr PlanOp::Reads kReadsNothing{.inputs = false, .output = false};
constexpr PlanOp::Reads kReadsBoth{.inputs = true, .output = true};

/// `spec` with the dimensions `dims` gone.
TensorSpec without(const TensorSpec& spec, const std::vector<std::int64_t>& dims) {
  std::vector<bool> goes(spec.sizes.size());
  for (const std::int64_t dim : dims)
    goes[axis_of(dim, spec)] = true;
  TensorSpec rest{{}, spec.dtype};
  for (std::size_t i = 0; i < goes.size(); ++i) {
    if (!goes[i])
      rest.sizes.push_back(spec.sizes[i]);
  }
  return rest;
}

/// A reduced tensor with dimensions of 1 where those of `spec` went.
at::Tensor with_dims(const at::Tensor& reduced, const TensorSpec& spec,
                     const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> sizes = spec.sizes;
  for (const std::int64_t dim : dims)
    sizes[axis_of(dim, spec)] = 1;
  return reduced.view(sizes);
}

/// A view of its input, which a plan copies, as a dynamic graph does: what a node hands on is
/// contiguous.
struct Viewed {
  std::string_view name;
  std::function<at::Tensor(const at::Tensor& x)> view;
  std::function<TensorSpec(const TensorSpec& input)> result;
};

/// The elements that the view leaves out have a gradient of 0.
PlanValue copy_of_view(PlanBuilder& builder, PlanValue input, Viewed viewed) {
  return builder.apply(plan_function({viewed.name,
                                      [view = viewed.view](at::Tensor& out, const Inputs& in) {
                                        out.copy_(view(in[0]));
                                      },
                                      [view = std::move(viewed.view)](const PlanGradients& of) {
                                        of.of_inputs[0].zero_();
                                        view(of.of_inputs[0]).copy_(of.of_output);
                                      },
                                      kReadsNothing, std::move(viewed.result)}),
                       input);
}

/// All elements of a row in one line: [B, …] to [B, n].
class Flatten final : public Layer, public Lowerable, public TakesIndices {
 public:
  Flatten(const Config& config, const LayerSpec& spec)
      : from_(config.get<std::int64_t>("start_dim")) {
    only_input(spec);
    expect_at_least(spec, static_cast<std::size_t>(from_) + 1,
                    "a dimension " + std::to_string(from_) + " to begin with");
  }
  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return inputs[0].flatten(from_);
  }
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override {
    std::vector<std::int64_t> sizes = builder.spec(inputs[0]).sizes;
    sizes.resize(static_cast<std::size_t>(from_));
    sizes.push_back(-1);
    return builder.reshape(inputs[0], std::move(sizes));
  }

 private:
  std::int64_t from_;
};

/// A row's elements in other sizes: [B, …] to [B, sizes …].
class Unflatten final : public Layer, public Lowerable, public TakesIndices {
 public:
  Unflatten(const Config& config, const LayerSpec& spec)
      : sizes_(config.get<std::vector<std::int64_t>>("shape")) {
    only_input(spec);
    const std::vector<std::int64_t>& given = spec.inputs[0].sizes;
    const auto product = [](auto begin, auto end) {
      return std::accumulate(begin, end, std::int64_t{1}, std::multiplies<>());
    };
    const bool varies = std::count(given.begin() + 1, given.end(), TensorSpec::kVaries) > 0;
    const std::int64_t elements = product(given.begin() + 1, given.end());
    if (!varies && elements != product(sizes_.begin(), sizes_.end())) {
      throw DataError("a row of " + std::to_string(elements) + " elements cannot be " +
                      nlohmann::json(sizes_).dump());
    }
  }
  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    std::vector<std::int64_t> sizes{inputs[0].size(0)};
    sizes.insert(sizes.end(), sizes_.begin(), sizes_.end());
    return inputs[0].reshape(sizes);
  }
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override {
    std::vector<std::int64_t> sizes{builder.spec(inputs[0]).sizes[0]};
    sizes.insert(sizes.end(), sizes_.begin(), sizes_.end());
    return builder.reshape(inputs[0], std::move(sizes));
  }

 private:
  std::vector<std::int64_t> sizes_;
};

/// Two dimensions change places.
class Transpose final : public Layer, public Lowerable, public TakesIndices {
 public:
  Transpose(const Config& config, const LayerSpec& spec)
      : a_(config.get<std::int64_t>("dim0")), b_(config.get<std::int64_t>("dim1")) {
    only_input(spec);
  }
  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return inputs[0].transpose(a_, b_);
  }
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override {
    return copy_of_view(
        builder, inputs[0],
        {"transpose", [a = a_, b = b_](const at::Tensor& x) { return x.transpose(a, b); },
         [a = a_, b = b_](TensorSpec spec) {
           std::swap(spec.sizes[axis_of(a, spec)], spec.sizes[axis_of(b, spec)]);
           return spec;
         }});
  }

 private:
  std::int64_t a_;
  std::int64_t b_;
};

/// One index of a dimension, which goes: the last step of a sequence.
class Select final : public Layer, public Lowerable, public TakesIndices {
 public:
  Select(const Config& config, const LayerSpec& spec)
      : dim_(config.get<std::int64_t>("dim")), index_(config.get<std::int64_t>("index")) {
    only_input(spec);
  }
  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return inputs[0].select(dim_, index_);
  }
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override {
    return copy_of_view(
        builder, inputs[0],
        {"select",
         [dim = dim_, index = index_](const at::Tensor& x) { return x.select(dim, index); },
         [dim = dim_](const TensorSpec& spec) { return without(spec, {dim}); }});
  }

 private:
  std::int64_t dim_;
  std::int64_t index_;
};

/// A stretch of a dimension.
class Narrow final : public Layer, public Lowerable, public TakesIndices {
 public:
  Narrow(const Config& config, const LayerSpec& spec)
      : dim_(config.get<std::int64_t>("dim")),
        start_(config.get<std::int64_t>("start")),
        length_(config.get<std::int64_t>("length")) {
    only_input(spec);
  }
  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return inputs[0].narrow(dim_, start_, length_);
  }
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override {
    return copy_of_view(builder, inputs[0],
                        {"narrow",
                         [dim = dim_, start = start_, length = length_](const at::Tensor& x) {
                           return x.narrow(dim, start, length);
                         },
                         [dim = dim_, length = length_](TensorSpec spec) {
                           spec.sizes[axis_of(dim, spec)] = length;
                           return spec;
                         }});
  }

 private:
  std::int64_t dim_;
  std::int64_t start_;
  std::int64_t length_;
};

using Dims = std::vector<std::int64_t>;

/// amax and amin: elements that are equal share the gradient.
void share_among_equals(const PlanGradients& of, const Dims& dims) {
  const at::Tensor chosen = of.inputs[0].eq(with_dims(of.output, of.sizes[0], dims));
  at::mul_out(of.of_inputs[0], with_dims(of.of_output, of.sizes[0], dims), chosen)
      .div_(chosen.sum(dims, /*keepdim=*/true));
}

/// The operations of a plan for reductions along `dims`.
PlanFunction planned_mean(const Dims& dims) {
  return {"mean", [dims](at::Tensor& out, const Inputs& in) { at::mean_out(out, in[0], dims); },
          [dims](const PlanGradients& of) {
            std::int64_t count = 1;
            for (const std::int64_t dim : dims)
              count *= of.sizes[0].sizes[axis_of(dim, of.sizes[0])];
            of.of_inputs[0].copy_(with_dims(of.of_output, of.sizes[0], dims).div(count));
          },
          kReadsNothing, [dims](const TensorSpec& input) { return without(input, dims); }};
}
PlanFunction planned_sum(const Dims& dims) {
  return {"sum", [dims](at::Tensor& out, const Inputs& in) { at::sum_out(out, in[0], dims); },
          [dims](const PlanGradients& of) {
            of.of_inputs[0].copy_(with_dims(of.of_output, of.sizes[0], dims));
          },
          kReadsNothing, [dims](const TensorSpec& input) { return without(input, dims); }};
}
PlanFunction planned_max(const Dims& dims) {
  return {"max", [dims](at::Tensor& out, const Inputs& in) { at::amax_out(out, in[0], dims); },
          [dims](const PlanGradients& of) { share_among_equals(of, dims); }, kReadsBoth,
          [dims](const TensorSpec& input) { return without(input, dims); }};
}
PlanFunction planned_min(const Dims& dims) {
  return {"min", [dims](at::Tensor& out, const Inputs& in) { at::amin_out(out, in[0], dims); },
          [dims](const PlanGradients& of) { share_among_equals(of, dims); }, kReadsBoth,
          [dims](const TensorSpec& input) { return without(input, dims); }};
}
PlanFunction planned_last(const Dims& dims) {
  return {"last",
          [dim = dims[0]](at::Tensor& out, const Inputs& in) { out.copy_(in[0].select(dim, -1)); },
          [dim = dims[0]](const PlanGradients& of) {
            of.of_inputs[0].zero_().select(dim, -1).copy_(of.of_output);
          },
          kReadsNothing, [dims](const TensorSpec& input) { return without(input, dims); }};
}

struct NamedReduction {
  std::string_view name;
  at::Tensor (*reduce)(const at::Tensor& x, at::IntArrayRef dims);
  PlanFunction (*planned)(const Dims& dims);
  /// What padding is filled with, so that it changes nothing.
  double neutral;
};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::array kReductions{
    NamedReduction{"mean", [](const at::Tensor& x, at::IntArrayRef dims) { return x.mean(dims); },
                   planned_mean, 0},
    NamedReduction{"sum", [](const at::Tensor& x, at::IntArrayRef dims) { return x.sum(dims); },
                   planned_sum, 0},
    NamedReduction{"max",
                   [](const at::Tensor& x, at::IntArrayRef dims) { return at::amax(x, dims); },
                   planned_max, -kInfinity},
    NamedReduction{"min",
                   [](const at::Tensor& x, at::IntArrayRef dims) { return at::amin(x, dims); },
                   planned_min, kInfinity},
    NamedReduction{"last",
                   [](const at::Tensor& x, at::IntArrayRef dims) { return x.select(dims[0], -1); },
                   planned_last, 0},
};

/// Numbers of rows, [B], beside a result [B, ...].
at::Tensor of_rows(const at::Tensor& rows, std::int64_t dimensions) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(dimensions), 1);
  sizes[0] = rows.size(0);
  return rows.view(sizes);
}

// Operations of a plan over sequences [B, length, ...] and the reference that describes their
// padding.

/// `value` where there is padding.
PlanFunction planned_filling(double value) {
  const auto padding = [](const Inputs& in) {
    return beside(real_positions(in[1], in[0].size(1)), in[0]).logical_not();
  };
  return {"fill_padding",
          [padding, value](at::Tensor& out, const Inputs& in) {
            out.copy_(in[0]).masked_fill_(padding(in), value);
          },
          [padding](const PlanGradients& of) {
            of.of_inputs[0].copy_(of.of_output).masked_fill_(padding(of.inputs), 0);
          }};
}

/// Sums of rows, divided by their positions times `others`.
PlanFunction planned_division(std::int64_t length, std::int64_t others) {
  const auto count = [length, others](const at::Tensor& reference, const at::Tensor& sums) {
    const at::Tensor real = real_positions(reference, length);
    return of_rows(real.sum(1).clamp_min(1).mul(others).to(sums.scalar_type()), sums.dim());
  };
  return {
      "divide_by_positions",
      [count](at::Tensor& out, const Inputs& in) { at::div_out(out, in[0], count(in[1], in[0])); },
      [count](const PlanGradients& of) {
        at::div_out(of.of_inputs[0], of.of_output, count(of.inputs[1], of.of_output));
      }};
}

/// Zeros in rows without a position that counts.
PlanFunction planned_zeros(std::int64_t length) {
  const auto is_empty = [length](const at::Tensor& reference, const at::Tensor& values) {
    return of_rows(real_positions(reference, length).any(1).logical_not(), values.dim());
  };
  return {
      "fill_empty_rows",
      [is_empty](at::Tensor& out, const Inputs& in) {
        out.copy_(in[0]).masked_fill_(is_empty(in[1], in[0]), 0);
      },
      [is_empty](const PlanGradients& of) {
        of.of_inputs[0].copy_(of.of_output).masked_fill_(is_empty(of.inputs[1], of.of_output), 0);
      }};
}

/// last_position()
PlanFunction planned_last_position() {
  return {"last_position",
          [](at::Tensor& out, const Inputs& in) {
            out.copy_(last_position(in[0], real_positions(in[1], in[0].size(1))));
          },
          [](const PlanGradients& of) {
            const at::Tensor& x = of.inputs[0];
            const LastPositions last =
                last_positions(x.sizes(), real_positions(of.inputs[1], x.size(1)));
            of.of_inputs[0].zero_().scatter_add_(
                1, last.index, of.of_output.unsqueeze(1).masked_fill(last.is_none, 0));
          },
          {},
          [](const TensorSpec& input) { return without(input, {1}); }};
}

/// One number from all along some dimensions, which go. With lengths or a mask as its reference,
/// only positions of dimension 1 that are no padding count; where a row has none it gives zeros.
class Reduce final : public Layer, public Lowerable, public TakesIndices {
 public:
  Reduce(const Config& config, const LayerSpec& spec)
      : dims_(config.get<std::vector<std::int64_t>>("dims")),
        padding_(padding_reference(spec)),
        by_(config.get<std::string>("reduction")) {
    for (const NamedReduction& reduction : kReductions) {
      if (reduction.name == by_)
        reduction_ = &reduction;
    }
    TREADLE_EXPECTS(reduction_ != nullptr, "the schema lists the same names");
    if (by_ == "last" && dims_.size() != 1)
      config.fail("dims",
                  "the last one is taken along one dimension, got " + std::to_string(dims_.size()));
    if (!padding_)
      return;
    const auto count = static_cast<std::int64_t>(spec.inputs[0].sizes.size());
    for (std::int64_t& dim : dims_)
      dim += dim < 0 ? count : 0;
    if (std::find(dims_.begin(), dims_.end(), 1) == dims_.end() ||
        std::find(dims_.begin(), dims_.end(), 0) != dims_.end()) {
      config.fail("dims",
                  "with lengths or a mask, dimension 1 goes, which they describe, and the batch "
                  "stays");
    }
  }
  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    if (!padding_)
      return reduction_->reduce(inputs[0], dims_);
    const at::Tensor& x = inputs[0];
    const at::Tensor real = real_positions(inputs[*padding_], x.size(1));
    if (by_ == "last")
      return last_position(x, real);
    const at::Tensor filled = x.masked_fill(beside(real, x).logical_not(), reduction_->neutral);
    if (by_ == "mean") {
      const at::Tensor sum = filled.sum(dims_);
      const at::Tensor count =
          real.sum(1).clamp_min(1).mul(elements_of_position(x.sizes())).to(sum.scalar_type());
      return sum.div(of_rows(count, sum.dim()));
    }
    const at::Tensor result = reduction_->reduce(filled, dims_);
    return result.masked_fill(of_rows(real.any(1).logical_not(), result.dim()), 0);
  }
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override {
    if (!padding_)
      return builder.apply(plan_function(reduction_->planned(dims_)), inputs[0]);
    const PlanValue reference = inputs[*padding_];
    const auto with_reference = [&](PlanFunction function, PlanValue value) {
      const std::array given{value, reference};
      return builder.apply(plan_function(std::move(function)), given);
    };
    if (by_ == "last")
      return with_reference(planned_last_position(), inputs[0]);
    const std::vector<std::int64_t> sizes = builder.spec(inputs[0]).sizes;
    const PlanValue filled = with_reference(planned_filling(reduction_->neutral), inputs[0]);
    if (by_ == "mean") {
      return with_reference(planned_division(sizes[1], elements_of_position(sizes)),
                            builder.apply(plan_function(planned_sum(dims_)), filled));
    }
    return with_reference(planned_zeros(sizes[1]),
                          builder.apply(plan_function(reduction_->planned(dims_)), filled));
  }
  bool takes_indices(std::size_t index) const override { return index > 0; }

 private:
  /// Elements of one position that are reduced.
  std::int64_t elements_of_position(at::IntArrayRef sizes) const {
    std::int64_t count = 1;
    for (const std::int64_t dim : dims_)
      count *= dim == 1 ? 1 : sizes[static_cast<std::size_t>(dim)];
    return count;
  }

  std::vector<std::int64_t> dims_;
  std::optional<std::size_t> padding_;
  std::string by_;
  const NamedReduction* reduction_ = nullptr;
};

/// One number around the last dimensions: as many before as behind in each.
class Pad final : public Layer, public Lowerable {
 public:
  Pad(const Config& config, const LayerSpec& spec) : value_(config.get<double>("value")) {
    only_input(spec);
    for (const std::int64_t width : config.get<std::vector<std::int64_t>>("padding"))
      widths_.insert(widths_.begin(), {width, width});
    expect_at_least(spec, widths_.size() / 2 + 1, "dimensions to pad behind the batch");
  }
  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return at::constant_pad_nd(inputs[0], widths_, value_);
  }
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override {
    return builder.apply(plan_pad(widths_, value_), inputs[0]);
  }

 private:
  std::vector<std::int64_t> widths_;
  double value_;
};

/// Images [B, channels, height, width] so many times as large.
class Upsample final : public Layer, public Lowerable {
 public:
  Upsample(const Config& config, const LayerSpec& spec)
      : factor_(config.get<std::int64_t>("scale_factor")),
        bilinear_(config.get<std::string>("mode") == "bilinear") {
    only_input(spec);
    expect_dimensions(spec, 4, "images [B, channels, height, width]");
  }
  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    const at::Tensor& x = inputs[0];
    const std::array<std::int64_t, 2> size{x.size(2) * factor_, x.size(3) * factor_};
    return bilinear_ ? at::upsample_bilinear2d(x, size, /*align_corners=*/false)
                     : at::upsample_nearest2d(x, size);
  }
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override {
    const auto forward = [bilinear = bilinear_](at::Tensor& out, const Inputs& in) {
      const at::IntArrayRef size = out.sizes().slice(2);
      if (bilinear) {
        at::upsample_bilinear2d_out(out, in[0], size, /*align_corners=*/false);
      } else {
        at::upsample_nearest2d_out(out, in[0], size);
      }
    };
    const auto backward = [bilinear = bilinear_](const PlanGradients& of) {
      const at::IntArrayRef size = of.of_output.sizes().slice(2);
      if (bilinear) {
        at::upsample_bilinear2d_backward_out(of.of_inputs[0], of.of_output, size, of.sizes[0].sizes,
                                             /*align_corners=*/false);
      } else {
        at::upsample_nearest2d_backward_out(of.of_inputs[0], of.of_output, size, of.sizes[0].sizes);
      }
    };
    return builder.apply(plan_function({"upsample", forward, backward, kReadsNothing,
                                        [factor = factor_](TensorSpec spec) {
                                          spec.sizes[2] *= factor;
                                          spec.sizes[3] *= factor;
                                          return spec;
                                        }}),
                         inputs[0]);
  }

 private:
  std::int64_t factor_;
  bool bilinear_;
};

}  // namespace

std::shared_ptr<const PlanOp> plan_mean(std::vector<std::int64_t> dims) {
  return plan_function(planned_mean(dims));
}

void add_shapes(Registrar& registrar) {
  registrar.add<FactoryOf<Flatten>, LayerFactory>("flatten");
  registrar.add<FactoryOf<Unflatten>, LayerFactory>("unflatten");
  registrar.add<FactoryOf<Transpose>, LayerFactory>("transpose");
  registrar.add<FactoryOf<Select>, LayerFactory>("select");
  registrar.add<FactoryOf<Narrow>, LayerFactory>("narrow");
  registrar.add<FactoryOf<Reduce>, LayerFactory>("reduce");
  registrar.add<FactoryOf<Pad>, LayerFactory>("pad");
  registrar.add<FactoryOf<Upsample>, LayerFactory>("upsample");
}

std::shared_ptr<const PlanOp> plan_pad(const std::vector<std::int64_t>& widths, double value) {
  const auto middle = [widths](at::Tensor padded) {
    for (std::size_t i = 0; i < widths.size() / 2; ++i) {
      const std::int64_t dim = padded.dim() - 1 - static_cast<std::int64_t>(i);
      padded =
          padded.narrow(dim, widths[2 * i], padded.size(dim) - widths[2 * i] - widths[2 * i + 1]);
    }
    return padded;
  };
  return plan_function(
      {"pad",
       [middle, value](at::Tensor& out, const Inputs& in) {
         middle(out.fill_(value)).copy_(in[0]);
       },
       [middle](const PlanGradients& of) { of.of_inputs[0].copy_(middle(of.of_output)); },
       kReadsNothing,
       [widths](TensorSpec spec) {
         for (std::size_t i = 0; i < widths.size() / 2; ++i) {
           spec.sizes[spec.sizes.size() - 1 - i] += widths[2 * i] + widths[2 * i + 1];
         }
         return spec;
       }});
}

}  // namespace treadle::layers
