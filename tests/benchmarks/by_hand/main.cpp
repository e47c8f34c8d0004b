// The loop that a good engineer writes with libtorch alone: batches by index_select,
// torch::optim::Adam, the loss summed on the side. It trains on the first four fifths of the rows,
// evaluates no others, keeps nothing.
//
//   by-hand FOLDER [--threads N] [--epochs N] [--weights FILE] [--no-shuffle] [--double]
//   [--save-every STEPS] [--device NAME]
//
// FOLDER has workflow.json, x.npy and y.npy; `whole-steps --folder` writes such. BLAS has its
// threads from its own variable, OPENBLAS_NUM_THREADS: --threads says nothing to it. On a device
// ("cuda") all rows lie there, and losses are added up there. Prints a line
// of JSON: the mean training loss of each epoch, microseconds per step, the moment of the first
// step's end (nanoseconds of CLOCK_MONOTONIC), libtorch's version.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Device.h>
#include <torch/nn/functional/loss.h>
#include <torch/optim/adam.h>
#include <torch/serialize.h>
#include <torch/utils.h>
#include <torch/version.h>
#include <nlohmann/json.hpp>

#include "arrays.h"
#include "network.h"

namespace {

using namespace treadle::benchmarks;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct Options {
  fs::path folder;
  int threads = 1;
  std::optional<int> epochs;  ///< absent: the document's
  fs::path weights;           ///< empty: random ones
  bool shuffle = true;
  at::ScalarType dtype = at::kFloat;
  std::int64_t save_every = 0;  ///< steps; 0: never
  std::string device = "cpu";
};

using Setting = void (*)(Options& options, const std::string& value);

const std::map<std::string, Setting> kSettings{
    {"--threads",
     [](Options& options, const std::string& value) { options.threads = std::stoi(value); }},
    {"--epochs",
     [](Options& options, const std::string& value) { options.epochs = std::stoi(value); }},
    {"--weights", [](Options& options, const std::string& value) { options.weights = value; }},
    {"--save-every",
     [](Options& options, const std::string& value) { options.save_every = std::stoll(value); }},
    {"--device", [](Options& options, const std::string& value) { options.device = value; }},
};

/// libtorch knows CUDA once its library is there.
c10::Device device_of(const std::string& name) {
  const c10::Device device(name);
  if (device.is_cuda() && dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr)
    throw std::runtime_error(dlerror());
  return device;
}

/// Throws std::invalid_argument.
Options options_of(const std::vector<std::string>& words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto setting = kSettings.find(words[i]);
    if (words[i] == "--no-shuffle") {
      options.shuffle = false;
    } else if (words[i] == "--double") {
      options.dtype = at::kDouble;
    } else if (setting != kSettings.end() && i + 1 < words.size()) {
      setting->second(options, words[++i]);
    } else if (options.folder.empty() && words[i].front() != '-') {
      options.folder = words[i];
    } else {
      throw std::invalid_argument("what is " + words[i] + "?");
    }
  }
  if (options.folder.empty())
    throw std::invalid_argument("a folder with workflow.json, x.npy and y.npy is missing");
  return options;
}

nlohmann::json train(const Options& options) {
  at::set_num_threads(options.threads);
  torch::manual_seed(1);
  const nlohmann::json document =
      nlohmann::json::parse(std::ifstream(options.folder / "workflow.json"));
  const nlohmann::json& training = document.at("training");
  const int epochs = options.epochs.value_or(training.at("epochs").get<int>());
  const std::int64_t batch_size = training.at("batch_size");
  const bool classifies = document.at("loss").at("use") == "cross_entropy";

  const c10::Device device = device_of(options.device);
  const at::Tensor inputs = read_npy(options.folder / "x.npy").to(device, options.dtype);
  at::Tensor targets = read_npy(options.folder / "y.npy");
  if (!classifies)
    targets = targets.to(options.dtype);
  const std::int64_t rows = inputs.size(0) * 4 / 5;
  const std::int64_t outputs =
      classifies ? targets.max().item<std::int64_t>() + 1 : targets.size(1);
  const Network net = make_network(document.at("model"), inputs.sizes().slice(1), outputs);
  targets = targets.to(device);
  net.module->to(options.dtype);
  if (!options.weights.empty())
    load_weights(*net.module, options.weights);
  net.module->to(device);
  torch::optim::Adam optimizer(
      net.module->parameters(),
      torch::optim::AdamOptions(document.at("optimizer").at("learning_rate").get<double>()));

  std::vector<double> losses;
  std::int64_t steps = 0;
  Clock::time_point first_step;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const at::Tensor order =
        (options.shuffle ? at::randperm(rows, at::kLong) : at::arange(rows, at::kLong)).to(device);
    double sum = 0;
    at::Tensor sum_there = at::zeros({}, at::TensorOptions(device).dtype(at::kDouble));
    for (std::int64_t begin = 0; begin < rows; begin += batch_size) {
      const std::int64_t count = std::min(batch_size, rows - begin);
      const at::Tensor batch = order.narrow(0, begin, count);
      optimizer.zero_grad();
      const at::Tensor output = net.forward(at::index_select(inputs, 0, batch));
      const at::Tensor wanted = at::index_select(targets, 0, batch);
      const at::Tensor loss = classifies ? torch::nn::functional::cross_entropy(output, wanted)
                                         : torch::nn::functional::mse_loss(output, wanted);
      loss.backward();
      optimizer.step();
      if (device.is_cpu())
        sum += loss.item<double>() * static_cast<double>(count);
      else
        sum_there += loss.detach() * static_cast<double>(count);
      if (++steps == 1)
        first_step = Clock::now();
      if (options.save_every > 0 && steps % options.save_every == 0) {
        torch::save(net.module, (options.folder / "model.pt").string());
        torch::save(optimizer, (options.folder / "optimizer.pt").string());
      }
    }
    if (!device.is_cpu())
      sum = sum_there.item<double>();
    losses.push_back(sum / static_cast<double>(rows));
  }
  // The first step allocates everything: it belongs to the start.
  const std::chrono::duration<double, std::micro> time = Clock::now() - first_step;
  const auto timed = static_cast<double>(steps - 1);
  return {{"losses", losses},
          {"microseconds_per_step", steps > 1 ? time.count() / timed : 0},
          {"first_step", std::chrono::nanoseconds(first_step.time_since_epoch()).count()},
          {"libtorch", TORCH_VERSION}};
}

}  // namespace

int main(int argument_count, char** arguments) {
  try {
    const nlohmann::json line = train(options_of({arguments + 1, arguments + argument_count}));
    std::printf("%s\n", line.dump().c_str());
    return 0;
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "by-hand: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "by-hand: %s\n", error.what());
    return 1;
  }
}
