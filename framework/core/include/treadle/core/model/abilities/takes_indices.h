#pragma once

#include <cstddef>

namespace treadle {

/// Takes integers or booleans: indices into vocabularies, lengths, masks. A layer that does not is
/// given floating-point numbers only; a graph refuses everything else when it is built.
class TakesIndices {
 public:
  virtual ~TakesIndices();
  /// Whether input `index` may be of integers or booleans; 0 is the stream.
  virtual bool takes_indices(std::size_t index) const {
    static_cast<void>(index);
    return true;
  }
};

}  // namespace treadle
