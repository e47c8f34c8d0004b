#include <treadle/base/version.h>

namespace treadle {

std::string_view version() {
  return TREADLE_VERSION;
}

}  // namespace treadle
