#include "resources/run_precision.h"

#include <treadle/base/json_words.h>
#include <treadle/base/problem.h>
#include <treadle/tensor/autocast.h>
#include <treadle/tensor/torch_versions.h>

#include "resources/processor.h"

namespace treadle::internal {

std::string why_not(const Precision& precision, const RunDevice& device) {
  if (precision.autocast && !Autocast::exists_on(device.device().type())) {
    return "mixed precision needs libtorch's autocast, which it does not have for the device " +
           quote_text(device.name) + "; choose \"float32\" or \"bf16\"";
  }
  if (precision.autocast == c10::ScalarType::Half && device.device().is_cpu() &&
      !torch_versions::kHasHalfOnCpu) {
    return "libtorch " TORCH_VERSION
           " has no float16 operators for a CPU; choose \"bf16-mixed\", or libtorch 2.6 or later";
  }
  return {};
}

void expect_possible(const Precision& precision, const RunDevice& device,
                     const ResolvedWorkflow& workflow) {
  const std::string pointer = "/precision";
  if (const std::string problem = why_not(precision, device); !problem.empty())
    throw DocumentError({Problem{workflow.document->place_of(pointer), pointer, problem}});
}

std::string why_slow(const Precision& precision, const RunDevice& device) {
  if (precision.float8) {
    return "fp8 is emulated by operators of float32, bit by bit, for studies of accuracy: this "
           "training is slower than one in float32";
  }
  if (!device.device().is_cpu())
    return {};
  const bool is_bfloat16 = precision.autocast == c10::ScalarType::BFloat16 ||
                           precision.parameters == c10::ScalarType::BFloat16;
  if (is_bfloat16 && !multiplies_bfloat16()) {
    return "this processor has no instructions for bfloat16 (AVX512_BF16, AMX), so this training "
           "is slower than one in float32";
  }
  if (precision.autocast == c10::ScalarType::Half && !multiplies_float16()) {
    return "this processor has no instructions for float16 (AVX512_FP16, AMX), so this training "
           "is slower than one in float32";
  }
  return {};
}

}  // namespace treadle::internal
