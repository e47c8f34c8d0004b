#include <treadle/plan/program.h>

#include <algorithm>

#include <c10/core/ScalarType.h>
#include <torch/nn/module.h>

#include <treadle/plan/call.h>
#include <treadle/plan/passes.h>
#include <treadle/plan/run.h>

namespace treadle::plan {
namespace {

/// How often it was written to, as far as libtorch counts.
std::uint32_t version_of(const at::Tensor& tensor) {
  return tensor.is_inference() ? 0 : static_cast<std::uint32_t>(tensor._version());
}

}  // namespace

PlanCall::~PlanCall() = default;

void PlanCall::rethrow_from_result(std::size_t, std::span<const at::Tensor>) const {
  throw;
}

Program::Program() = default;
Program::~Program() = default;

void Program::watch(const torch::nn::Module& module) {
  const auto add = [&](const at::Tensor& tensor) {
    watched.push_back({tensor, tensor.data_ptr(), tensor.requires_grad(), version_of(tensor)});
  };
  for (const at::Tensor& parameter : module.parameters())
    add(parameter);
  for (const at::Tensor& buffer : module.buffers())
    add(buffer);
  for (const auto& part : module.modules())
    modes.emplace_back(part.get(), part->is_training());
}

bool Program::still_holds() const {
  return std::all_of(watched.begin(), watched.end(),
                     [&](const Watched& one) {
                       // Writes matter only where values became constants.
                       return one.tensor.data_ptr() == one.data &&
                              one.tensor.requires_grad() == one.is_trained &&
                              (folded.empty() || version_of(one.tensor) == one.version);
                     }) &&
         std::all_of(conditions.begin(), conditions.end(),
                     [](const auto& holds) { return holds(); }) &&
         std::all_of(modes.begin(), modes.end(),
                     [](const auto& mode) { return mode.first->is_training() == mode.second; });
}

std::size_t bytes_of(const TensorSpec& spec) {
  std::size_t bytes = c10::elementSize(spec.dtype);
  for (const std::int64_t size : spec.sizes)
    bytes *= static_cast<std::size_t>(size);
  return bytes;
}

void complete(Program& program) {
  if (program.is_for_inference)
    fold_constants(program);
  if (program.records_gradients)
    add_backward(program);
  fuse_elementwise(program);
  lay_out(program);
}

}  // namespace treadle::plan
