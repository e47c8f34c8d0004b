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

}  // namespace treadle::engine
