#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace treadle::launch {

/// The processes of a group as they see each other once they are connected: rank 0 of `launch
/// --check` makes it, and writes json() to its standard output.
struct GroupReport {
  struct Rank {
    std::string host;
    std::string address;         ///< by which the others reach it
    std::int64_t threads = 1;    ///< for its work
    std::string cpu_capability;  ///< of the kernels that libtorch has chosen: "AVX2"
    std::string treadle;         ///< versions
    std::string libtorch;
    std::string blas;
  };
  /// Of the communicator: medians, and of all ranks the slowest.
  struct Speed {
    double latency_ms = 0;        ///< of an all-gather of 8 bytes
    double bytes_per_second = 0;  ///< that a rank sends in an all-to-all of some MB
    double exchange_ms = 0;       ///< of a step with kExchangedFloats gradients
  };
  static constexpr std::int64_t kExchangedFloats = 500'000;

  /// Throws nlohmann::json::exception for anything but what json() makes.
  static GroupReport from(const nlohmann::json& value);
  nlohmann::json json() const;

  std::string communicator;           ///< the component: "gloo"
  std::vector<Rank> ranks;            ///< at least one
  std::optional<Speed> speed;         ///< nothing: one process exchanges nothing
  std::vector<std::string> problems;  ///< sentences: a training would be refused
};

}  // namespace treadle::launch
