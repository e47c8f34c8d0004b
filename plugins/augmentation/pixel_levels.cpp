#include "pixel_levels.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle::augmentation {

PixelLevels::PixelLevels(const Config& config, std::string component)
    : component_(std::move(component)), white_(config.get_or("max_value", 0.0)) {}

void PixelLevels::learn(const RowReader& reader, const RowList& rows,
                        const std::vector<std::optional<ImageShape>>& images) {
  if (white_ > 0)
    return;
  std::vector<std::int64_t> some(std::min<std::size_t>(rows.size(), 1024));
  rows.copy(0, some);
  Batch batch;
  reader.gather(some, batch);
  double lowest = 0;
  double highest = 0;
  for (std::size_t port = 0; port < images.size(); ++port) {
    if (!images[port])
      continue;
    lowest = std::min(lowest, batch.inputs[port].min().item<double>());
    highest = std::max(highest, batch.inputs[port].max().item<double>());
  }
  if (lowest < 0 || !(highest <= 255)) {
    throw DataError(component_ + ": colors are numbers from 0 to 1 or from 0 to 255, and images " +
                    "here have values from " + nlohmann::json(lowest).dump() + " to " +
                    nlohmann::json(highest).dump() + "; put " + component_ +
                    " in front of transforms that scale them, or set \"max_value\"");
  }
  white_ = highest > 1 ? 255 : 1;
}

void PixelLevels::store(StateDict& state) const {
  state.put_number("white", white_);
}

void PixelLevels::restore(const StateDict& state) {
  white_ = state.number("white");
}

void PixelLevels::change(const at::Tensor& images, const std::vector<std::int64_t>& rows,
                         const Change& change) const {
  if (rows.empty())
    return;
  const bool of_bytes = images.scalar_type() == at::kByte;
  const double scale = of_bytes ? 1 : 255 / white_;
  const bool is_all = static_cast<std::int64_t>(rows.size()) == images.size(0);
  at::Tensor chosen;
  at::Tensor levels = images;
  if (!is_all) {
    chosen = at::tensor(rows, at::kLong).to(images.device(), /*non_blocking=*/true);
    levels = images.index_select(0, chosen);
  }
  if (of_bytes)
    levels = levels.to(at::kFloat);
  if (scale != 1)
    levels = levels.mul(scale);
  at::Tensor changed = change({levels, of_bytes});
  if (scale != 1)
    changed = changed.div(scale);
  if (is_all) {
    at::Tensor(images).copy_(changed);
  } else {
    at::Tensor(images).index_copy_(0, chosen, changed.to(images.scalar_type()));
  }
}

at::Tensor factors_of(const std::vector<double>& of_rows, const std::vector<std::int64_t>& rows,
                      const color::Levels& levels) {
  const auto count = static_cast<std::int64_t>(rows.size());
  at::Tensor factors = at::empty({count, 1, 1, 1}, at::kDouble);
  std::transform(rows.begin(), rows.end(), factors.data_ptr<double>(),
                 [&](std::int64_t row) { return of_rows[static_cast<std::size_t>(row)]; });
  return factors.to(levels.images.scalar_type()).to(levels.images.device(), /*non_blocking=*/true);
}

}  // namespace treadle::augmentation
