#include "random_resized_crop.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "range_of.h"
#include "resizing.h"

namespace treadle::augmentation {
namespace {

/// The box of this size in the middle.
Box box_in_middle(const ImageShape& image, double height, double width) {
  const auto side = [](double extent, std::int64_t most) {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::nearbyint(extent)), 1, most);
  };
  const std::int64_t lines = side(height, image.height);
  const std::int64_t columns = side(width, image.width);
  const std::int64_t top = (image.height - lines) / 2;
  const std::int64_t left = (image.width - columns) / 2;
  return {top, top + lines, left, left + columns};
}

}  // namespace

RandomResizedCrop::RandomResizedCrop(const Config& config)
    : Augmentation(config, "random_resized_crop"),
      choice_(config, component()),
      scale_(range_of(config, "scale", {0.08, 1}, /*is_positive=*/true)),
      ratio_(range_of(config, "ratio", {3.0 / 4, 4.0 / 3}, /*is_positive=*/true)) {
  if (!config.has("size"))
    return;
  const bool is_square = config.json()["size"].is_number();
  const auto sides = is_square ? std::vector<std::int64_t>(2, config.get<std::int64_t>("size"))
                               : config.get<std::vector<std::int64_t>>("size");
  if (sides.size() != 2)
    config.fail("size", "must be one number, or height and width");
  size_ = Size{sides[0], sides[1]};
}

RandomResizedCrop::~RandomResizedCrop() = default;

void RandomResizedCrop::prepare(const DataSpec& before) {
  images_ = choice_.choose(before);
  masks_ = Masks(before, images_, component());
}

DataSpec RandomResizedCrop::do_output_spec(const DataSpec& before) const {
  const std::vector<std::optional<ImageShape>> images = choice_.choose(before);
  DataSpec after = before;
  const Masks masks(before, images, component());
  for_each_size(images, [&](const ImageShape& image) {
    masks.resize(after, image, size_of(image).height, size_of(image).width);
  });
  for (std::size_t port = 0; port < images.size(); ++port) {
    if (!images[port])
      continue;
    std::vector<std::int64_t>& shape = after.inputs[port].shape;
    shape[shape.size() - 2] = size_of(*images[port]).height;
    shape[shape.size() - 1] = size_of(*images[port]).width;
  }
  return after;
}

Box RandomResizedCrop::middle_of(const ImageShape& image) const {
  const Size size = size_of(image);
  const double ratio = static_cast<double>(size.width) / static_cast<double>(size.height);
  const auto height = static_cast<double>(image.height);
  const auto width = static_cast<double>(image.width);
  return width > height * ratio ? box_in_middle(image, height, height * ratio)
                                : box_in_middle(image, width / ratio, width);
}

Box RandomResizedCrop::draw(RandomBits bits, const ImageShape& image) const {
  const auto height = static_cast<double>(image.height);
  const auto width = static_cast<double>(image.width);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area = height * width * (scale_[0] + (scale_[1] - scale_[0]) * bits.uniform());
    const double aspect =
        std::exp(std::log(ratio_[0]) + std::log(ratio_[1] / ratio_[0]) * bits.uniform());
    const auto columns = static_cast<std::int64_t>(std::nearbyint(std::sqrt(area * aspect)));
    const auto lines = static_cast<std::int64_t>(std::nearbyint(std::sqrt(area / aspect)));
    const double down = bits.uniform();
    const double right = bits.uniform();
    if (lines < 1 || lines > image.height || columns < 1 || columns > image.width)
      continue;
    const auto top =
        static_cast<std::int64_t>(down * static_cast<double>(image.height - lines + 1));
    const auto left =
        static_cast<std::int64_t>(right * static_cast<double>(image.width - columns + 1));
    return {top, top + lines, left, left + columns};
  }
  const double ratio = std::clamp(width / height, ratio_[0], ratio_[1]);
  return width / height < ratio ? box_in_middle(image, width / ratio, width)
                                : box_in_middle(image, height, height * ratio);
}

void RandomResizedCrop::change(Batch& batch, const ApplyContext& context) const {
  std::vector<std::uint64_t> seeds(static_cast<std::size_t>(batch.size()));
  if (context.training) {
    RandomBits bits = draws(context);
    std::generate(seeds.begin(), seeds.end(), [&] { return bits.next(); });
  }
  const auto boxes_of = [&](const ImageShape& image) {
    std::vector<Box> boxes(seeds.size());
    std::transform(seeds.begin(), seeds.end(), boxes.begin(), [&](std::uint64_t seed) {
      return context.training ? draw(RandomBits(seed), image) : middle_of(image);
    });
    return boxes;
  };
  for_each_size(images_, [&](const ImageShape& image) {
    masks_.resize(batch, image, /*has_outside=*/false, [&](const at::Tensor& values, double) {
      return resized_masks(values, boxes_of(image), size_of(image).height, size_of(image).width);
    });
  });
  for (std::size_t port = 0; port < images_.size(); ++port) {
    if (!images_[port])
      continue;
    const ImageShape& image = *images_[port];
    at::Tensor& images = batch.inputs[port];
    expect_images(images, image);
    const Size size = size_of(image);
    std::vector<std::int64_t> sizes = images.sizes().vec();
    sizes[sizes.size() - 2] = size.height;
    sizes[sizes.size() - 1] = size.width;
    images = resized(images.view({sizes[0], image.channels, image.height, image.width}),
                     boxes_of(image), size.height, size.width)
                 .view(sizes);
  }
}

}  // namespace treadle::augmentation
