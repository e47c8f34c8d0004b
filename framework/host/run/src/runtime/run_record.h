#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/host/catalog/plugin_lock.h>

namespace treadle::internal {

struct DataFacts {
  std::string hash;
  std::int64_t rows = 0;
  std::string source = {};  ///< SourceHash; empty: not known
};

/// Of every run of this program: versions of Treadle and libtorch, BLAS, CPU capability, plugins.
nlohmann::json program_record(const PluginLock& plugins);

/// What a run's bits depend on beside its document: plugins with build ids and hashes, libtorch,
/// BLAS, CPU capability, kind of device (RunDevice::kind), data. Also facts for people that are not
/// compared ("informative").
nlohmann::json environment_record(const PluginLock& plugins, const nlohmann::json& resolved,
                                  const DataFacts& data, const std::string& device, int workers);

/// The words of a difference: "libtorch was 1.13.1 and is now 2.6.0".
struct DifferenceWords {
  std::string was = " was ";
  std::string is = " and is now ";
  std::string end = {};
  std::string is_new = " was not used before";  ///< of a plugin
};

/// One sentence per difference that can change bits, empty when there is none.
std::vector<std::string> differences(const nlohmann::json& before, const nlohmann::json& now,
                                     const DifferenceWords& words = {});

/// This process's peak resident memory so far, in bytes.
std::int64_t peak_memory_bytes();
/// Resident memory now, in bytes.
std::int64_t resident_memory_bytes();
/// Starts the measurement of the peak anew, where the kernel allows it.
void reset_peak_memory();

/// Which instruction set libtorch's kernels were chosen for ("AVX2"): its configuration text says
/// so in every version.
std::string cpu_capability();

/// "1.13.1"
std::string libtorch_version();

}  // namespace treadle::internal
