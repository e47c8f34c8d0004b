#pragma once

#include <string>
#include <vector>

#include <treadle/core/components/state_dict.h>

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

}  // namespace treadle
