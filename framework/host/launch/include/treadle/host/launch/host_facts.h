#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace treadle::launch {

/// The facts of a host that decide how fast it trains: for `launch --check`.
struct HostFacts {
  /// Of this host. Facts that the system hides are empty or 0.
  static HostFacts of_this_host();
  /// Of what json() made on another host. Throws nlohmann::json::exception.
  static HostFacts from(const nlohmann::json& value);

  nlohmann::json json() const;

  std::string name;
  std::string version;                ///< of Treadle
  std::string processor;              ///< "AMD EPYC 9654 96-Core Processor"
  std::vector<std::string> features;  ///< those of the processor that libtorch looks at
  std::int64_t cores = 1;             ///< that this process may use
  std::int64_t memory_mib = 0;
  std::vector<std::string> addresses;  ///< that other hosts may reach it by
};

}  // namespace treadle::launch
