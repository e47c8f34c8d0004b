#pragma once

#include <string>
#include <utility>
#include <vector>

#include <treadle/core/components/state_dict.h>

namespace torch::nn {
class Module;
}

namespace treadle {

class ExtraState;

/// A module's parameters in their order, each once. Module::parameters() lists a tied weight, which
/// has several names, several times. Use this function to count parameters, to request gradients or
/// to make steps.
std::vector<at::Tensor> distinct_parameters(const torch::nn::Module& module);

/// Their names in the same order; of several, the first, as PyTorch's named_parameters() has it.
std::vector<std::string> distinct_parameter_names(const torch::nn::Module& module);

/// A module's parameters and buffers by name, as handles (not copies), and copies of its extra
/// states: uint8 [bytes]. Names as libtorch gives them.
StateDict module_state(const torch::nn::Module& module);

/// The modules, of itself and those within it, that have an ExtraState, by the names that
/// module_state() gives these.
std::vector<std::pair<std::string, ExtraState*>> extra_states(const torch::nn::Module& module);

}  // namespace treadle
