#include "targets.h"

#include <array>

namespace treadle::fuzz {

std::span<const Target> targets() {
  static constexpr std::array kTargets{
      Target{"safetensors", safetensors},
      Target{"state-folder", state_folder},
      Target{"csv", csv},
      Target{"jsonl", jsonl},
      Target{"npy", npy},
      Target{"texts", texts},
      Target{"tokenizer", tokenizer},
      Target{"exported-model", exported_model},
      Target{"journal", journal},
      Target{"search-journal", search_journal},
      Target{"study", study},
      Target{"points", points},
      Target{"run-bundle", run_bundle},
  };
  return kTargets;
}

}  // namespace treadle::fuzz
