#include <treadle/core/data/abilities/fits_training_rows.h>

namespace treadle {

FitsTrainingRows::~FitsTrainingRows() = default;

}  // namespace treadle
