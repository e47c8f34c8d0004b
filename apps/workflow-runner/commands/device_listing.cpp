#include "commands/device_listing.h"

#include <algorithm>
#include <cstddef>

#include <treadle/base/text_wrap.h>

#include "terminal/result_text.h"

namespace treadle::cli {
namespace {

using Json = nlohmann::json;

std::string facts_of(const DeviceInfo& info) {
  std::string text = info.name;
  if (info.memory_bytes > 0)
    text += ", " + bytes_text(static_cast<double>(info.memory_bytes)) + " of memory";
  if (!info.driver.empty())
    text += ", " + info.driver;
  return text;
}

}  // namespace

std::string device_listing(const DeviceListing& listing, const Terminal& terminal) {
  std::size_t width = 0;
  for (const DeviceListing::Found& one : listing.found)
    width = std::max(width, columns_of(one.name));
  for (const DeviceListing::Absent& one : listing.absent)
    width = std::max(width, columns_of(one.name));
  std::string text;
  for (const DeviceListing::Found& one : listing.found) {
    const std::string note = one.name == listing.preferred ? " (what \"auto\" stands for)" : "";
    text += hanging_text("  " + one.name, width + 4, facts_of(one.info) + note, terminal.width());
  }
  for (const DeviceListing::Absent& one : listing.absent)
    text += hanging_text("  " + one.name, width + 4, "not here: " + one.why, terminal.width());
  if (text.empty())
    text = "  no plugin offers a device; see \"workflow-runner plugins doctor\"\n";
  return terminal.bold("devices") + "\n" + text;
}

Json device_listing_json(const DeviceListing& listing) {
  Json found = Json::array();
  for (const DeviceListing::Found& one : listing.found) {
    found.push_back({{"device", one.name},
                     {"name", one.info.name},
                     {"memory_bytes", one.info.memory_bytes},
                     {"driver", one.info.driver}});
  }
  Json absent = Json::array();
  for (const DeviceListing::Absent& one : listing.absent)
    absent.push_back({{"device", one.name}, {"why", one.why}});
  return {{"devices", found}, {"absent", absent}, {"auto", listing.preferred}};
}

}  // namespace treadle::cli
