// Out-of-line destructors give every interface one home for its virtual table and type information,
// so casts and exceptions work across plugins.
#include <treadle/core/components/extra_state.h>
#include <treadle/core/components/plugin_registry.h>
#include <treadle/core/components/state_dict.h>

namespace treadle {

ComponentLoader::~ComponentLoader() = default;
ExtraState::~ExtraState() = default;
Stateful::~Stateful() = default;

}  // namespace treadle
