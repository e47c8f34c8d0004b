#pragma once

#include <string>

namespace treadle::internal {

/// A text as a field of a CSV file: quoted as RFC 4180 asks where it needs it.
std::string csv_field(const std::string& text);

}  // namespace treadle::internal
