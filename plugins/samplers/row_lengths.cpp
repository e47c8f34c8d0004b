#include "row_lengths.h"

#include <cstddef>
#include <vector>

#include <treadle/base/json_words.h>

namespace treadle::samplers {

at::Tensor row_lengths(const RowReader& reader, const std::optional<std::string>& name) {
  if (name)
    return reader.lengths(reader.spec().input_index(*name));
  for (std::size_t port = 0; port < reader.spec().inputs.size(); ++port) {
    at::Tensor lengths = reader.lengths(port);
    if (lengths.defined())
      return lengths;
  }
  return {};
}

std::string inputs_in_words(const DataSpec& spec) {
  std::vector<std::string> names;
  for (const PortSpec& port : spec.inputs) {
    if (!port.is_auxiliary())
      names.push_back(port.name);
  }
  return (names.size() == 1 ? "the input is " : "the inputs are ") + quoted_list(names);
}

}  // namespace treadle::samplers
