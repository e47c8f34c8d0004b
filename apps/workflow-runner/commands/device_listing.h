#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <treadle/host/run/devices.h>

#include "terminal/terminal.h"

/// What `workflow-runner devices` prints.
namespace treadle::cli {

std::string device_listing(const DeviceListing& listing, const Terminal& terminal);
nlohmann::json device_listing_json(const DeviceListing& listing);

}  // namespace treadle::cli
