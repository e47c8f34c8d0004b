#include "network.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/relu.h>
#include <ATen/ops/tanh.h>
#include <c10/core/GradMode.h>
#include <torch/nn/modules/linear.h>
#include <nlohmann/json.hpp>

#include "../plugins/networks/encoder.h"
#include "../plugins/networks/lenet.h"
#include "../plugins/networks/lstm.h"
#include "arrays.h"

namespace treadle::benchmarks {
namespace {

/// Linear layers with ReLU between them.
class Mlp final : public torch::nn::Module {
 public:
  Mlp(std::int64_t features, std::vector<std::int64_t> widths, std::int64_t outputs) {
    const auto layers = register_module("layers", std::make_shared<torch::nn::Module>("Layers"));
    widths.push_back(outputs);
    for (const std::int64_t width : widths) {
      layers_.push_back(layers->register_module(std::to_string(layers_.size()),
                                                torch::nn::Linear(features, width)));
      features = width;
    }
  }

  at::Tensor forward(const at::Tensor& inputs) {
    at::Tensor values = inputs;
    for (std::size_t i = 0; i + 1 < layers_.size(); ++i)
      values = at::relu(layers_[i]->forward(values));
    return layers_.back()->forward(values);
  }

 private:
  std::vector<torch::nn::Linear> layers_;
};

/// A linear layer, `rounds` times the same one with tanh, and a linear layer.
class Refined final : public torch::nn::Module {
 public:
  Refined(std::int64_t features, std::int64_t width, std::int64_t rounds, std::int64_t outputs)
      : rounds_(rounds),
        input_(register_module("input", torch::nn::Linear(features, width))),
        body_(register_module("body", torch::nn::Linear(width, width))),
        output_(register_module("output", torch::nn::Linear(width, outputs))) {}

  at::Tensor forward(const at::Tensor& inputs) {
    at::Tensor values = input_->forward(inputs);
    for (std::int64_t round = 0; round < rounds_; ++round)
      values = at::tanh(body_->forward(values));
    return output_->forward(values);
  }

 private:
  std::int64_t rounds_;
  torch::nn::Linear input_;
  torch::nn::Linear body_;
  torch::nn::Linear output_;
};

template <typename Net>
Network network_of(std::shared_ptr<Net> net) {
  return {net, [net](const at::Tensor& inputs) { return net->forward(inputs); }};
}

using Make = Network (*)(const nlohmann::json& model, at::IntArrayRef row, std::int64_t outputs);

const std::map<std::string, Make> kNetworks{
    {"mlp",
     [](const nlohmann::json& model, at::IntArrayRef row, std::int64_t outputs) {
       return network_of(std::make_shared<Mlp>(row[0], model.at("hidden"), outputs));
     }},
    {"lenet",
     [](const nlohmann::json&, at::IntArrayRef row, std::int64_t outputs) {
       return network_of(std::make_shared<LeNet>(row[0], row[1], row[2], outputs));
     }},
    {"lstm",
     [](const nlohmann::json& model, at::IntArrayRef row, std::int64_t outputs) {
       return network_of(std::make_shared<Lstm>(row[1], model.at("hidden"), outputs));
     }},
    {"refined",
     [](const nlohmann::json& model, at::IntArrayRef row, std::int64_t outputs) {
       return network_of(
           std::make_shared<Refined>(row[0], model.at("width"), model.at("rounds"), outputs));
     }},
    {"encoder",
     [](const nlohmann::json& model, at::IntArrayRef row, std::int64_t outputs) {
       const EncoderShape shape{model.at("width"), model.at("heads"), model.at("feed_forward"),
                                model.at("layers")};
       return network_of(std::make_shared<Encoder>(shape, row[0], row[1], outputs));
     }},
};

}  // namespace

Network make_network(const nlohmann::json& model, at::IntArrayRef row, std::int64_t outputs) {
  return kNetworks.at(model.at("use"))(model, row, outputs);
}

void load_weights(torch::nn::Module& module, const std::filesystem::path& path) {
  const at::NoGradGuard no_gradients;
  std::map<std::string, at::Tensor> weights = read_safetensors(path);
  for (auto& parameter : module.named_parameters()) {
    // A module that was adapted has its names behind "net.".
    auto found = weights.find(parameter.key());
    if (found == weights.end())
      found = weights.find("net." + parameter.key());
    if (found == weights.end())
      throw std::runtime_error(path.string() + ": has no \"" + parameter.key() + "\"");
    parameter.value().copy_(found->second);
    weights.erase(found);
  }
  if (!weights.empty())
    throw std::runtime_error(path.string() + ": nobody wants \"" + weights.begin()->first + "\"");
}

}  // namespace treadle::benchmarks
