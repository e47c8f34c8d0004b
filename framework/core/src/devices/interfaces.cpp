// Out-of-line destructors give every interface one home for its virtual table and type information,
// so casts and exceptions work across plugins.
#include <treadle/core/devices/device_backend.h>

namespace treadle {

DeviceBackend::~DeviceBackend() = default;

}  // namespace treadle
