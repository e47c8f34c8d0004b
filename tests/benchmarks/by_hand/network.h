#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <nlohmann/json_fwd.hpp>

namespace treadle::benchmarks {

/// A module, and how it is called.
struct Network {
  std::shared_ptr<torch::nn::Module> module;
  std::function<at::Tensor(const at::Tensor&)> forward;
};

/// The network that a workload's document describes under `model`, for rows of the shape `row`.
Network make_network(const nlohmann::json& model, at::IntArrayRef row, std::int64_t outputs);

/// Gives the network the weights that a run of Treadle left behind: all of them, by their names.
void load_weights(torch::nn::Module& module, const std::filesystem::path& path);

}  // namespace treadle::benchmarks
