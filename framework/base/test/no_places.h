#pragma once

#include <string_view>

#include <treadle/base/config.h>

namespace treadle {

/// For values that no document holds.
class NoPlaces final : public PlaceIndex {
 public:
  Place place_of(std::string_view) const override { return {}; }
};

}  // namespace treadle
