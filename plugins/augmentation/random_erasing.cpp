#include "random_erasing.h"

#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "range_of.h"

namespace treadle::augmentation {

RandomErasing::RandomErasing(const Config& config)
    : Augmentation(config, "random_erasing"),
      choice_(config, component()),
      probability_(config.get_or("probability", 0.5)),
      scale_(range_of(config, "scale", {0.02, 0.33}, /*is_positive=*/true)),
      ratio_(range_of(config, "ratio", {0.3, 3.3}, /*is_positive=*/true)) {
  const bool is_list = config.has("value") && config.json()["value"].is_array();
  values_ = is_list ? config.get<std::vector<double>>("value")
                    : std::vector<double>{config.get_or("value", 0.0)};
}

RandomErasing::~RandomErasing() = default;

std::vector<std::optional<ImageShape>> RandomErasing::choose(const DataSpec& spec) const {
  std::vector<std::optional<ImageShape>> images = choice_.choose(spec);
  for (std::size_t port = 0; port < images.size(); ++port) {
    const auto channels = static_cast<std::int64_t>(values_.size());
    if (images[port] && channels != 1 && channels != images[port]->channels) {
      throw DataError(component() + ": \"value\" has " + std::to_string(channels) +
                      " numbers, and input " + quote_text(spec.inputs[port].name) + " has " +
                      std::to_string(images[port]->channels) +
                      " channels; give one number, or one for each channel");
    }
  }
  return images;
}

DataSpec RandomErasing::do_output_spec(const DataSpec& before) const {
  choose(before);
  return before;
}

bool RandomErasing::do_takes_bytes() const {
  return std::all_of(values_.begin(), values_.end(), [](double value) {
    return value >= 0 && value <= 255 && value == std::trunc(value);
  });
}

Box RandomErasing::draw(RandomBits bits, const ImageShape& image) const {
  if (bits.uniform() >= probability_)
    return {};
  const auto height = static_cast<double>(image.height);
  const auto width = static_cast<double>(image.width);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area = height * width * (scale_[0] + (scale_[1] - scale_[0]) * bits.uniform());
    const double aspect =
        std::exp(std::log(ratio_[0]) + std::log(ratio_[1] / ratio_[0]) * bits.uniform());
    const auto lines = static_cast<std::int64_t>(std::nearbyint(std::sqrt(area * aspect)));
    const auto columns = static_cast<std::int64_t>(std::nearbyint(std::sqrt(area / aspect)));
    const double down = bits.uniform();
    const double right = bits.uniform();
    if (lines >= image.height || columns >= image.width)
      continue;
    const auto top =
        static_cast<std::int64_t>(down * static_cast<double>(image.height - lines + 1));
    const auto left =
        static_cast<std::int64_t>(right * static_cast<double>(image.width - columns + 1));
    return {top, top + lines, left, left + columns};
  }
  return {};
}

void RandomErasing::change(Batch& batch, const ApplyContext& context) const {
  if (!context.training)
    return;
  std::vector<std::uint64_t> seeds(static_cast<std::size_t>(batch.size()));
  RandomBits bits = draws(context);
  std::generate(seeds.begin(), seeds.end(), [&] { return bits.next(); });
  std::vector<Box> boxes(seeds.size());
  for (std::size_t port = 0; port < images_.size(); ++port) {
    if (!images_[port])
      continue;
    const ImageShape& image = *images_[port];
    std::transform(seeds.begin(), seeds.end(), boxes.begin(),
                   [&](std::uint64_t seed) { return draw(RandomBits(seed), image); });
    change_images(batch.inputs[port], image, [&](const at::Tensor& planes) {
      const at::Tensor inside = inside_of(boxes, planes);
      if (values_.size() == 1)
        return planes.masked_fill_(inside, values_[0]);
      const at::Tensor values = at::tensor(values_, at::kDouble)
                                    .to(planes.scalar_type())
                                    .to(planes.device(), /*non_blocking=*/true)
                                    .view({image.channels, 1, 1});
      return at::where(inside, values, planes);
    });
  }
}

}  // namespace treadle::augmentation
