#include <treadle/core/fits_groups.h>

namespace treadle {

FitsGroups::~FitsGroups() = default;

}  // namespace treadle
