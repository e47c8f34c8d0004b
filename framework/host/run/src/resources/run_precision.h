#pragma once

#include <string>

#include <treadle/core/precision/precision.h>

#include "resources/run_device.h"

namespace treadle::internal {

/// Why models cannot be trained in it on the device, and what to do; empty: they can.
std::string why_not(const Precision& precision, const RunDevice& device);

/// Throws a DocumentError at /precision where why_not() has a reason.
void expect_possible(const Precision& precision, const RunDevice& device,
                     const ResolvedWorkflow& workflow);

/// Why training in it is slower on the device than in float32; empty: it is not known to be.
std::string why_slow(const Precision& precision, const RunDevice& device);

}  // namespace treadle::internal
