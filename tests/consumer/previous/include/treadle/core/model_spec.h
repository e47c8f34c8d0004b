#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

#include <treadle/core/data_spec.h>

namespace treadle {

/// One output a loss asks a model for.
struct OutputSpec {
  std::string name;
  std::int64_t width = 0;  ///< the output is [B, width]

  bool operator==(const OutputSpec&) const = default;
};

/// What a model must fit: inputs from the data (after transforms), outputs from the loss.
struct ModelSpec {
  std::vector<PortSpec> inputs;
  std::vector<OutputSpec> outputs;
  TargetKind target = TargetKind::kNone;
  c10::ScalarType dtype = c10::ScalarType::Float;
};

}  // namespace treadle
