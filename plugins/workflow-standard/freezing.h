#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/model.h>

namespace treadle {

/// Which parameters of a model are trained, and from when: "freeze" and "unfreeze" of a
/// configuration. Parameters are named by the model's parts (tags), or by patterns. One training;
/// the model must outlive it.
class Freezing {
 public:
  /// Fails when a name means no parameter, when "unfreeze" names one that is trained from the
  /// start, or when none is.
  Freezing(Model& model, const Config& config);

  /// Freezes what "freeze" names.
  void begin();
  /// Trains what that entry of "unfreeze" names.
  void unfreeze(std::size_t entry);

 private:
  std::vector<at::Tensor> frozen_;
  std::vector<std::vector<at::Tensor>> entries_;
};

}  // namespace treadle
