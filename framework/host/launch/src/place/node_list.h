#pragma once

#include <string>
#include <string_view>

namespace treadle::launch {

/// The first host of a list as Slurm writes it: "node01" of "node[01-03,07],gpu5". Empty for text
/// that is no such list.
std::string first_host(std::string_view node_list);

}  // namespace treadle::launch
