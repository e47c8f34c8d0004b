#pragma once

#include <ostream>
#include <string>

namespace treadle::testing {

/// GoogleTest shows a case as its name, not as its bytes.
template <typename Case>
requires requires(const Case& one) {
  one.name.c_str();
  one.make;
}
void PrintTo(const Case& one, std::ostream* out) {
  *out << one.name;
}

/// Names parametrised tests after their case's `name`.
struct CaseName {
  template <typename Info>
  std::string operator()(const Info& info) const {
    return info.param.name;
  }
};

}  // namespace treadle::testing
