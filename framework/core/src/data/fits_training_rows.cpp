#include <treadle/core/fits_training_rows.h>

namespace treadle {

FitsTrainingRows::~FitsTrainingRows() = default;

}  // namespace treadle
