#pragma once

#include <string>
#include <string_view>

namespace treadle {

/// An ability of a module (a Model, a Layer): it has a state that is no tensor of a fixed shape,
/// such as the trees of a forest. Saved wherever weights are, as `<module>._extra_state`, which is
/// what PyTorch's get_extra_state() becomes.
class ExtraState {
 public:
  virtual ~ExtraState();
  /// Of any length. The same bytes for the same state.
  virtual std::string extra_state() const = 0;
  /// Throws a StorageError, and changes nothing, where the bytes are none of such a module's.
  virtual void load_extra_state(std::string_view bytes) = 0;
};

}  // namespace treadle
