#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

#include <treadle/core/data_spec.h>

namespace treadle {

/// One output a loss needs from a model.
struct OutputSpec {
  std::string name;
  /// Without the batch dimension: {10} for one vector a row, {28, 28, 10} for one per pixel,
  /// {kVaries, 65} for one per time step. The width comes last.
  std::vector<std::int64_t> shape;

  std::int64_t width() const { return shape.back(); }
  bool operator==(const OutputSpec&) const = default;
};

/// Inputs and outputs that a model must fit: from the data after transforms, and from the losses.
struct ModelSpec {
  std::vector<PortSpec> inputs;
  std::vector<OutputSpec> outputs;
  std::vector<TargetSpec> targets = {};
  c10::ScalarType dtype = c10::ScalarType::Float;  ///< of the parameters
  /// For a model that writes a sequence: in evaluation each batch continues the positions of the
  /// one before in its ForwardContext, so that a step costs one position. Parameters and their
  /// names stay the same. A model that cannot takes each batch as a whole sequence.
  bool is_step_by_step = false;
};

}  // namespace treadle
