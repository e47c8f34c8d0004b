#pragma once

#include <string>

namespace treadle {

/// An object whose class may belong to a plugin: errors name its origin.
class Provided {
 public:
  /// "optimizer \"adamw\" of plugin org.treadle.optimizers 1.0.0"; empty for what no registry made.
  const std::string& origin() const noexcept { return origin_; }

  /// For who made the object, before anybody else has it.
  void set_origin(std::string origin) { origin_ = std::move(origin); }

 protected:
  Provided() = default;
  ~Provided() = default;

 private:
  std::string origin_;
};

}  // namespace treadle
