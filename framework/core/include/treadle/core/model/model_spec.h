#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

#include <treadle/core/data/port_spec.h>
#include <treadle/core/data/target_spec.h>

namespace treadle {

/// What an output estimates of a number of the target. A model that scales its inputs has to scale
/// outputs back: where a target y becomes a · y + b, so does its estimate e.
enum class Estimate {
  kLocation,       ///< a value, mean or quantile: a · e + b
  kScale,          ///< a deviation, scale_of() of the output (scale_parameter.h): |a| · e
  kDimensionless,  ///< degrees of freedom, the logit of a mixture: e
  kCount,          ///< a parameter of a distribution of counts, which cannot be scaled
};

/// One output a loss needs from a model.
struct OutputSpec {
  std::string name;
  /// Without the batch dimension: {10} for one vector a row, {28, 28, 10} for one per pixel,
  /// {kVaries, 65} for one per time step. The width comes last.
  std::vector<std::int64_t> shape;
  /// What the model computes for each number of the target: along the width the first estimate of
  /// every number, then the second. Empty: nothing of the kind, such as logits of classes.
  std::vector<Estimate> estimates = {Estimate::kLocation};

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
