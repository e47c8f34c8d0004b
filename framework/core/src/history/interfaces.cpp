// Out-of-line destructors give every interface one home for its virtual table and type information,
// so casts and exceptions work across plugins.
#include <treadle/core/history/run_observer.h>

namespace treadle {

RunObserver::~RunObserver() = default;

}  // namespace treadle
