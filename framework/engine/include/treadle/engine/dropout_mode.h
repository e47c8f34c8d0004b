#pragma once

#include <cstdint>

namespace torch::nn {
class Module;
}

namespace treadle::engine {

/// Modes for Monte Carlo dropout: modules that DrawsInTraining, and libtorch's own dropouts, in
/// training mode, all others in evaluation mode. Returns how many draw; with none, nothing is
/// random.
std::int64_t set_dropout_mode(torch::nn::Module& model);

}  // namespace treadle::engine
