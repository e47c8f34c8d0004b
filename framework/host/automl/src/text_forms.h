#pragma once

#include <string>
#include <vector>

namespace treadle::automl {

/// What some texts are for people, though they are not read so: numbers or dates of another form,
/// and how to write them. `numbers with a decimal comma, such as "1,5"; write 1.5`. All texts have
/// to be of the form. Empty: texts of no such form, or none.
std::string form_hint(const std::vector<std::string>& texts);

}  // namespace treadle::automl
