#include "targets.h"

#include <array>

namespace treadle::fuzz {

std::span<const Target> targets() {
  static constexpr std::array kTargets{
      Target{"safetensors", safetensors},
      Target{"state-folder", state_folder},
      Target{"csv", csv},
      Target{"npy", npy},
  };
  return kTargets;
}

}  // namespace treadle::fuzz
