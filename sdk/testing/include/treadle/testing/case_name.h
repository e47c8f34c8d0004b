#pragma once

#include <string>

namespace treadle::testing {

/// Names parametrised tests after their case's `name`.
struct CaseName {
  template <typename Info>
  std::string operator()(const Info& info) const {
    return info.param.name;
  }
};

}  // namespace treadle::testing
