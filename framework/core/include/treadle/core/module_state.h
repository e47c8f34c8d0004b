#pragma once

#include <string>
#include <vector>

#include <treadle/core/state_dict.h>

namespace torch::nn {
class Module;
}

namespace treadle {

/// A module's parameters in their order, each once. Module::parameters() lists a tied weight, which
/// has several names, several times. Use this function to count parameters, to request gradients or
/// to make steps.
std::vector<at::Tensor> distinct_parameters(const torch::nn::Module& module);

/// Their names in the same order; of several, the first, as PyTorch's named_parameters() has it.
std::vector<std::string> distinct_parameter_names(const torch::nn::Module& module);

/// A module's parameters and buffers by name, as handles (not copies). Names as libtorch gives
/// them.
StateDict module_state(const torch::nn::Module& module);

/// Copies saved tensors into a module's parameters and buffers, which stay where they are (in an
/// arena, for example). Strict: throws a StorageError that lists every name that is missing,
/// unexpected or does not fit; see weights.h for what is less strict, and for files.
void load_module_state(torch::nn::Module& module, const StateDict& state);

}  // namespace treadle
