#include "shapes.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/upsample_nearest1d.h>
#include <ATen/ops/upsample_nearest2d.h>

#include <treadle/base/error.h>
#include <treadle/core/layer.h>
#include <treadle/plan/lowerable.h>
#include <treadle/plan/op.h>

#include "made.h"
#include "padding.h"

namespace treadle::layers {
namespace {

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
class Transpose final : public Layer, public TakesIndices {
 public:
  Transpose(const Config& config, const LayerSpec& spec)
      : a_(config.get<std::int64_t>("dim0")), b_(config.get<std::int64_t>("dim1")) {
    only_input(spec);
  }
  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return inputs[0].transpose(a_, b_);
  }

 private:
  std::int64_t a_;
  std::int64_t b_;
};

/// One index of a dimension, which goes: the last step of a sequence.
class Select final : public Layer, public TakesIndices {
 public:
  Select(const Config& config, const LayerSpec& spec)
      : dim_(config.get<std::int64_t>("dim")), index_(config.get<std::int64_t>("index")) {
    only_input(spec);
  }
  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    return inputs[0].select(dim_, index_);
  }

 private:
  std::int64_t dim_;
  std::int64_t index_;
};

/// A stretch of a dimension.
class Narrow final : public Layer, public TakesIndices {
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

 private:
  std::int64_t dim_;
  std::int64_t start_;
  std::int64_t length_;
};

struct NamedReduction {
  std::string_view name;
  at::Tensor (*reduce)(const at::Tensor& x, at::IntArrayRef dims);
  /// What padding is filled with, so that it changes nothing.
  double neutral;
};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::array kReductions{
    NamedReduction{"mean", [](const at::Tensor& x, at::IntArrayRef dims) { return x.mean(dims); },
                   0},
    NamedReduction{"sum", [](const at::Tensor& x, at::IntArrayRef dims) { return x.sum(dims); }, 0},
    NamedReduction{"max",
                   [](const at::Tensor& x, at::IntArrayRef dims) { return at::amax(x, dims); },
                   -kInfinity},
    NamedReduction{"min",
                   [](const at::Tensor& x, at::IntArrayRef dims) { return at::amin(x, dims); },
                   kInfinity},
    NamedReduction{
        "last", [](const at::Tensor& x, at::IntArrayRef dims) { return x.select(dims[0], -1); }, 0},
};

/// One number from all along some dimensions, which go. With lengths or a mask as its reference,
/// only positions of dimension 1 that are no padding count; where a row has none it gives zeros.
class Reduce final : public Layer, public TakesIndices {
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
    const auto of_rows = [](const at::Tensor& rows, const at::Tensor& result) {
      std::vector<std::int64_t> sizes(static_cast<std::size_t>(result.dim()), 1);
      sizes[0] = rows.size(0);
      return rows.view(sizes);
    };
    if (by_ == "mean") {
      const at::Tensor sum = filled.sum(dims_);
      std::int64_t others = 1;  // elements of one position
      for (const std::int64_t dim : dims_)
        others *= dim == 1 ? 1 : x.size(dim);
      return sum.div(of_rows(real.sum(1).clamp_min(1).mul(others).to(sum.scalar_type()), sum));
    }
    const at::Tensor result = reduction_->reduce(filled, dims_);
    return result.masked_fill(of_rows(real.any(1).logical_not(), result), 0);
  }
  bool takes_indices(std::size_t index) const override { return index > 0; }

 private:
  std::vector<std::int64_t> dims_;
  std::optional<std::size_t> padding_;
  std::string by_;
  const NamedReduction* reduction_ = nullptr;
};

/// One number around the last dimensions: as many before as behind in each.
class Pad final : public Layer {
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

 private:
  std::vector<std::int64_t> widths_;
  double value_;
};

/// Images [B, channels, height, width] so many times as large.
class Upsample final : public Layer {
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

 private:
  std::int64_t factor_;
  bool bilinear_;
};

}  // namespace

void add_shapes(Registrar& registrar) {
  registrar.add<Made<Flatten>, LayerFactory>("flatten");
  registrar.add<Made<Unflatten>, LayerFactory>("unflatten");
  registrar.add<Made<Transpose>, LayerFactory>("transpose");
  registrar.add<Made<Select>, LayerFactory>("select");
  registrar.add<Made<Narrow>, LayerFactory>("narrow");
  registrar.add<Made<Reduce>, LayerFactory>("reduce");
  registrar.add<Made<Pad>, LayerFactory>("pad");
  registrar.add<Made<Upsample>, LayerFactory>("upsample");
}

}  // namespace treadle::layers
