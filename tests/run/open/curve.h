#pragma once

#include <string_view>

#include <treadle/base/component.h>

/// An interface that Treadle knows nothing of: "curved" defines it and has a slot for it, "curves"
/// implements it.
namespace treadle::testing {

class Curve : public Component {
 public:
  static constexpr std::string_view kInterface = "org.treadle.test.curve/0";

  /// A factor for the learning rate; 0 <= progress <= 1.
  virtual double at(double progress) const = 0;
};

}  // namespace treadle::testing
