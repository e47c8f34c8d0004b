#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include <ATen/core/Tensor.h>

#include "tree_sum.h"

namespace treadle::trees {

/// Margins of batches that are evaluated again and again while a sum of trees grows. Batches are
/// known by the hash of their numbers. Takes as much memory as there are margins.
///
/// margins_of() may be called from several threads.
class KeptMargins {
 public:
  /// TreeSum::margins_of(), to the bit. Expects that `trees` has only grown since the last call.
  at::Tensor margins_of(const at::Tensor& rows, const TreeSum& trees);

 private:
  struct Margins {
    std::int64_t rounds = 0;
    at::Tensor values;
  };

  std::mutex mutex_;
  std::map<std::string, Margins> all_;  // those that no call is adding to
};

}  // namespace treadle::trees
