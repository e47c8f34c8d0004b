#include <treadle/core/data/abilities/fits_groups.h>

namespace treadle {

FitsGroups::~FitsGroups() = default;

}  // namespace treadle
