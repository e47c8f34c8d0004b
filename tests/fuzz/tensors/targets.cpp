#include "targets.h"

#include <array>

namespace treadle::fuzz {

std::span<const Target> targets() {
  static constexpr std::array kTargets{
      Target{"safetensors", safetensors},
      Target{"state-folder", state_folder},
      Target{"csv", csv},
      Target{"times", times},
      Target{"jsonl", jsonl},
#ifdef TREADLE_FUZZ_SQLITE
      Target{"sqlite", sqlite},
#endif
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
