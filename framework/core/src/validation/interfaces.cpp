// Out-of-line destructors give every interface one home for its virtual table and type information,
// so casts and exceptions work across plugins.
#include <treadle/core/validation/cross_validator.h>
#include <treadle/core/validation/metric_computer.h>
#include <treadle/core/validation/output_stage.h>

namespace treadle {

CrossValidator::~CrossValidator() = default;
MetricComputer::~MetricComputer() = default;
OutputStage::~OutputStage() = default;

}  // namespace treadle
