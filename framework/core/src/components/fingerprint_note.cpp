// The host's own fingerprint: the catalog, which may not load libtorch, reads it from this
// library's file as it reads those of plugins.
#include <oneapi/tbb/version.h>

#include <treadle/core/components/fingerprint.h>

namespace treadle {

TREADLE_NOTE auto kHostNote = fingerprint::note();

}  // namespace treadle
