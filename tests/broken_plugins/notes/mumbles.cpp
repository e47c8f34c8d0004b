// Its manifest is not JSON.
#include <treadle/base/plugin_abi.h>

namespace {
TREADLE_NOTE treadle::ElfNote<16> manifest{.type = treadle::kManifestNote,
                                           .text = {'{', '"', 'i', 'd', '"', ':'}};
}
