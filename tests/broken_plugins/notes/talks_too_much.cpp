// Its manifest is larger than anybody reads.
#include <treadle/base/plugin_abi.h>

namespace {
TREADLE_NOTE treadle::ElfNote<300 * 1024> manifest{.type = treadle::kManifestNote, .text = {'{'}};
}
