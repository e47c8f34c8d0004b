#pragma once

#include <string>
#include <vector>

namespace treadle {

/// Adds terms to the loss (LayerContext::add_loss). A graph runs it by itself, never beside other
/// branches, and node by node while losses are taken: what it adds is a part of the gradient.
class AddsLosses {
 public:
  virtual ~AddsLosses();
  virtual std::vector<std::string> loss_names() const = 0;
};

}  // namespace treadle
