#include "targets.h"

#include <array>

namespace treadle::fuzz {

std::span<const Target> targets() {
  static constexpr std::array kTargets{
      Target{"library-notes", library_notes},
      Target{"document", document},
      Target{"schema", schema},
      Target{"manifest", manifest},
      Target{"plugin-cache", plugin_cache},
      Target{"result", result},
#ifdef TREADLE_FUZZ_PARQUET
      Target{"parquet", parquet},
#endif
#ifdef TREADLE_FUZZ_IMAGES
      Target{"image", image},
#endif
#ifdef TREADLE_FUZZ_IDX
      Target{"idx", idx},
#endif
  };
  return kTargets;
}

}  // namespace treadle::fuzz
