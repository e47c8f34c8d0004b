#include <treadle/sdk.h>

#include <algorithm>

#include <ATen/ops/dropout.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/split_with_sizes.h>
#include <torch/nn/modules/linear.h>

namespace {

struct @Name@Shape {
  std::int64_t width = 0;
  std::int64_t blocks = 0;
  double dropout = 0;
};

/// x + lower(dropout(relu(upper(norm(x))))), where norm() is layer norm without weights of its own.
class @Name@Block final : public torch::nn::Module {
 public:
  explicit @Name@Block(const @Name@Shape& shape)
      : dropout_(shape.dropout),
        upper_(register_module("upper", torch::nn::Linear(shape.width, shape.width))),
        lower_(register_module("lower", torch::nn::Linear(shape.width, shape.width))) {}

  at::Tensor forward(const at::Tensor& values) {
    at::Tensor hidden = at::relu(upper_->forward(at::layer_norm(values, {values.size(1)})));
    if (dropout_ > 0)
      hidden = at::dropout(hidden, dropout_, is_training());
    return values.add(lower_->forward(hidden));
  }

 private:
  double dropout_;
  torch::nn::Linear upper_;
  torch::nn::Linear lower_;
};

/// A linear layer, residual blocks, a linear layer (the ResNet of Gorishniy et al., "Revisiting
/// Deep Learning Models for Tabular Data", 2021, with layer norm). Takes one input of any shape and
/// gives [B, shape...] for each output. All state of a call is in the call: forward() may run on
/// several threads at once.
class @Name@Network final : public treadle::Model {
 public:
  @Name@Network(const @Name@Shape& shape, const treadle::ModelSpec& spec) {
    const std::int64_t features = elements(spec.inputs[0].shape);
    std::int64_t total_width = 0;
    for (const treadle::OutputSpec& output : spec.outputs) {
      widths_.push_back(elements(output.shape));
      total_width += widths_.back();
      shapes_.push_back(output.shape);
      shapes_.back().insert(shapes_.back().begin(), -1);
    }
    input_ = register_module("input", torch::nn::Linear(features, shape.width));
    for (std::int64_t i = 0; i < shape.blocks; ++i) {
      blocks_.push_back(
          register_module("block" + std::to_string(i), std::make_shared<@Name@Block>(shape)));
    }
    output_ = register_module("output", torch::nn::Linear(shape.width, total_width));
    to(spec.dtype);
  }

  void forward(const treadle::Inputs& inputs, treadle::Outputs& outputs,
               treadle::ForwardContext&) override {
    at::Tensor values = input_->forward(inputs[0].reshape({inputs[0].size(0), -1}));
    for (const auto& block : blocks_)
      values = block->forward(values);
    outputs = at::split_with_sizes(output_->forward(values), widths_, 1);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      outputs[i] = outputs[i].reshape(shapes_[i]);
  }

 private:
  static std::int64_t elements(const std::vector<std::int64_t>& shape) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape)
      count *= size;
    return count;
  }

  std::vector<std::int64_t> widths_;                // elements of a row
  std::vector<std::vector<std::int64_t>> shapes_;  // with the batch
  torch::nn::Linear input_{nullptr};
  std::vector<std::shared_ptr<@Name@Block>> blocks_;
  torch::nn::Linear output_{nullptr};
};

/// Builds the same network every time it is asked: for each fold, trial and replica.
class @Name@ final : public treadle::ModelProvider {
 public:
  explicit @Name@(const treadle::Config& config)
      : shape_{config.get<std::int64_t>("width"), config.get<std::int64_t>("blocks"),
               config.get<double>("dropout")} {}

 private:
  std::shared_ptr<treadle::Model> do_create(const treadle::ModelSpec& spec) const override {
    if (spec.inputs.size() != 1) {
      throw treadle::DataError("model \"@name@\" takes one input, but the data has " +
                               std::to_string(spec.inputs.size()));
    }
    expect_fixed(spec.inputs[0].name, spec.inputs[0].shape);
    for (const treadle::OutputSpec& output : spec.outputs)
      expect_fixed(output.name, output.shape);
    if (!c10::isFloatingType(spec.inputs[0].dtype)) {
      throw treadle::DataError("model \"@name@\" takes numbers, but \"" + spec.inputs[0].name +
                               "\" has indices of categories or tokens; add {\"use\": "
                               "\"one_hot\"} to transforms");
    }
    for (const treadle::Column& column : spec.inputs[0].columns) {
      if (!column.categories.empty())
        refuse(column, "is a category", "one_hot");
      if (column.may_be_missing)
        refuse(column, "has missing values", "impute");
    }
    return std::make_shared<@Name@Network>(shape_, spec);
  }

  static void expect_fixed(const std::string& name, const std::vector<std::int64_t>& shape) {
    if (std::find(shape.begin(), shape.end(), treadle::kVaries) != shape.end()) {
      throw treadle::DataError("model \"@name@\": the sizes of \"" + name +
                               "\" vary from row to row, but it has one layer for all");
    }
  }

  [[noreturn]] static void refuse(const treadle::Column& column, const std::string& why,
                                  const std::string& remedy) {
    throw treadle::DataError("model \"@name@\": column \"" + column.name + "\" " + why +
                             "; add {\"use\": \"" + remedy + "\"} to transforms");
  }

  @Name@Shape shape_;
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
