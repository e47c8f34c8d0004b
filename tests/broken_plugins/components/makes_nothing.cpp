// Registers a factory that returns no component. The public functions of Registrar cannot.
#include <functional>
#include <memory>
#include <type_traits>

#include <treadle/base/config.h>
#define private public
#include <treadle/base/component.h>
#undef private

#include <treadle/plugin.h>
#include "sound/working_listener.h"

TREADLE_PLUGIN(registrar) {
  registrar.do_add(Listener::kInterface, "listener",
                   [](const treadle::Config&, const treadle::ComponentContext&) {
                     return std::unique_ptr<treadle::Component>();
                   });
}
