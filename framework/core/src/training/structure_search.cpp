#include <treadle/core/training/structure_search.h>

namespace treadle {

WeighsOperations::~WeighsOperations() = default;
RecordsStructures::~RecordsStructures() = default;
DerivesNetwork::~DerivesNetwork() = default;

}  // namespace treadle
