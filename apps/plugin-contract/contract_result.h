#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "terminal/terminal.h"

namespace treadle::cli {

/// A claim that does not hold.
struct FailedClaim {
  std::string suite;    ///< "LossContract"
  std::string claim;    ///< "AddsUpOverPartsOfABatch"
  std::string of_case;  ///< "mse_numbers"
  std::string message;  ///< expected and got, as GoogleTest has them
};

struct ComponentResult {
  std::string component;  ///< "loss mse"
  std::int64_t held = 0;
  std::int64_t skipped = 0;  ///< there is no device, say
  std::vector<FailedClaim> failed;
};

/// The outcome of `plugins check --contract`, by component.
struct ContractResult {
  std::vector<ComponentResult> components;

  bool is_good() const;
  std::string text(const Terminal& terminal) const;
  nlohmann::json json() const;
};

}  // namespace treadle::cli
