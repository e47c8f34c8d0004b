#pragma once

namespace treadle {

/// A stateful layer: keeps state between calls in LayerContext::state(). Graphs check for this
/// before they call a layer several times per backward pass, or with different rows. Also a model
/// whose ForwardContext::state() may be empty after a batch, and not after a later one: its batches
/// are evaluated one after the other.
class KeepsState {
 public:
  virtual ~KeepsState();
  virtual bool keeps_state() const { return true; }
};

}  // namespace treadle
