#pragma once

#include <string>
#include <vector>

namespace treadle {

/// Has outputs beside the one that forward() returns: the last state of a recurrent layer, the
/// weights of attention. A document tags them by name: "tag": {"h_n": "memory"}.
///
/// forward() passes each that is requested to LayerContext::set_output(): its rows, and a gradient
/// where it is of floating-point numbers. What forward() returns is the same, whatever is
/// requested.
class NamesOutputs {
 public:
  virtual ~NamesOutputs();
  /// Of the outputs after the first, each once; never "output", which is the first.
  virtual std::vector<std::string> output_names() const = 0;
};

}  // namespace treadle
