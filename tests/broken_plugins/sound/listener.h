#pragma once

#include <memory>
#include <string_view>

#include <treadle/base/component.h>

// The least that can be registered. Loading never looks further than Component.
class Listener : public treadle::Component {
 public:
  static constexpr std::string_view kInterface = "treadle.observer/0";

  explicit Listener(const treadle::Config&) {}
};
