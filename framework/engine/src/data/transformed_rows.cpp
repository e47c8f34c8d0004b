#include <treadle/engine/transformed_rows.h>

#include <utility>

namespace treadle::engine {

TransformedRows::TransformedRows(const RowReader& source, std::vector<const Transform*> transforms,
                                 c10::ScalarType dtype)
    : source_(source),
      samples_(transforms.empty() ? source.samples() : nullptr),
      preparation_(source.spec(), std::move(transforms), {.dtype = dtype, .keeps_float64 = true}) {}

TransformedRows::~TransformedRows() = default;

void TransformedRows::do_gather(std::span<const std::int64_t> rows, Batch& out) const {
  source_.gather(rows, out);
  BatchPreparation::Memory memory;
  preparation_.before_transfer(out, ApplyContext{}, memory);
}

at::Tensor TransformedRows::do_lengths(std::size_t input) const {
  const std::vector<PortSpec>& before = source_.spec().inputs;
  const std::string& name = preparation_.spec().inputs[input].name;
  for (std::size_t port = 0; port < before.size(); ++port) {
    if (before[port].name == name)
      return source_.lengths(port);
  }
  return {};
}

}  // namespace treadle::engine
