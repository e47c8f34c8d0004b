#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "way.h"

namespace treadle::benchmarks {

/// Ways whose times count, and whether one of those asked had to be sent away for what it computed.
struct Compared {
  std::vector<const Way*> same;
  bool all_agree = true;
};

/// Trains by every way from the same initial weights, on the same batches in the same order, and
/// compares the training losses of all epochs with those of `first`: in float64 to the last digits,
/// and in float32. Prints the largest differences of each, and why a way is not here. Writes into
/// `folder`.
Compared compare_curves(const Workload& workload, const std::filesystem::path& folder,
                        const Runner& first, const std::vector<std::unique_ptr<Way>>& others);

}  // namespace treadle::benchmarks
