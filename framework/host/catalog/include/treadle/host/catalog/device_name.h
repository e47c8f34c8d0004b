#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace treadle {

/// The name of a device in a document: "cuda", "cuda:1", "auto".
struct DeviceName {
  /// Of the interface "device"; empty for "auto".
  std::string component;
  std::optional<int> index;  ///< nothing: the first of its devices

  bool is_auto() const { return component.empty(); }
};

/// Nothing where `text` names no device in any case.
std::optional<DeviceName> parse_device_name(std::string_view text);

}  // namespace treadle
