#include <treadle/core/data/group_names.h>

namespace treadle {

GroupNames::~GroupNames() = default;

}  // namespace treadle
