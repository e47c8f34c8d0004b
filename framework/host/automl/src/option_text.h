#pragma once

#include <string>
#include <string_view>

namespace treadle::automl {

/// An option that names a column, as it can be typed into a shell: `--types zip=number`, or
/// `--drop '"size, in m"'` where the name has more than letters, digits and "_.-".
std::string option_text(std::string_view option, std::string_view column,
                        std::string_view type = "");

}  // namespace treadle::automl
