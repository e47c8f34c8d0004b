#include <treadle/engine/transformed_rows.h>

namespace treadle::engine {

TransformedRows::TransformedRows(const RowReader& source, std::vector<const Transform*> transforms)
    : source_(source), transforms_(std::move(transforms)), spec_(source.spec()) {
  for (const Transform* transform : transforms_)
    spec_ = transform->output_spec(spec_);
}

TransformedRows::~TransformedRows() = default;

void TransformedRows::do_gather(std::span<const std::int64_t> rows, Batch& out) const {
  source_.gather(rows, out);
  for (const Transform* transform : transforms_)
    transform->apply(out, ApplyContext{});
}

at::Tensor TransformedRows::do_lengths(std::size_t input) const {
  const std::vector<PortSpec>& before = source_.spec().inputs;
  const std::string& name = spec_.inputs[input].name;
  for (std::size_t port = 0; port < before.size(); ++port) {
    if (before[port].name == name)
      return source_.lengths(port);
  }
  return {};
}

}  // namespace treadle::engine
