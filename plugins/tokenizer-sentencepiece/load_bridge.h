#pragma once

#include "bridge.h"

namespace treadle::sentencepiece_plugin {

/// The bridge, loaded at the first call. Throws a PluginError where it cannot be.
const Bridge& bridge();

}  // namespace treadle::sentencepiece_plugin
