#include <treadle/core/group_names.h>

namespace treadle {

GroupNames::~GroupNames() = default;

}  // namespace treadle
