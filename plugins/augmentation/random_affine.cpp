#include "random_affine.h"

#include <cmath>
#include <string>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

#include "range_of.h"

namespace treadle::augmentation {
namespace {

/// A number d stands for [-d, d].
std::vector<double> spread_of(const Config& config, const std::string& key, double otherwise) {
  if (config.has(key) && config.json()[key].is_array())
    return config.get<std::vector<double>>(key);
  const double reach = config.get_or(key, otherwise);
  return {-reach, reach};
}

double within(const std::array<double, 2>& range, RandomBits& bits) {
  return range[0] + (range[1] - range[0]) * bits.uniform();
}

}  // namespace

RandomAffine::RandomAffine(const Config& config)
    : Augmentation(config, "random_affine"), choice_(config, component()), shear_{} {
  const std::vector<double> degrees = spread_of(config, "degrees", 10);
  if (degrees.size() != 2 || degrees[0] > degrees[1])
    config.fail("degrees", "must be a number, or the lower and the upper end of a range");
  degrees_ = {degrees[0], degrees[1]};
  const auto translate = config.get_or("translate", std::vector<double>(2, 0.0));
  if (translate.size() != 2)
    config.fail("translate", "must be a share of the width and one of the height");
  translate_ = {translate[0], translate[1]};
  scale_ = range_of(config, "scale", {1, 1}, /*is_positive=*/true);
  const std::vector<double> shear = spread_of(config, "shear", 0);
  if (shear.size() != 2 && shear.size() != 4)
    config.fail("shear", "must be a number, a range along x, or one along x and one along y");
  shear_[0] = {shear[0], shear[1]};
  if (shear.size() == 4)
    shear_[1] = {shear[2], shear[3]};
  for (const auto& [low, high] : shear_) {
    if (low > high || low <= -90 || high >= 90)
      config.fail("shear", "must have lower ends in front of upper ends, between -90 and 90");
  }
  sampling_.is_bilinear = config.get_or("interpolation", std::string("nearest")) == "bilinear";
  sampling_.fill = config.get_or("fill", 0.0);
}

RandomAffine::~RandomAffine() = default;

void RandomAffine::prepare(const DataSpec& before) {
  images_ = choice_.choose(before);
  masks_ = Masks(before, images_, component());
}

bool RandomAffine::do_takes_bytes() const {
  const double fill = sampling_.fill;
  return fill >= 0 && fill <= 255 && fill == std::trunc(fill);
}

DataSpec RandomAffine::do_output_spec(const DataSpec& before) const {
  choice_.choose(before);
  return before;
}

RandomAffine::Drawn RandomAffine::draw(RandomBits& bits) const {
  Drawn drawn;
  drawn.change.angle = within(degrees_, bits);
  drawn.translate = {translate_[0] * (2 * bits.uniform() - 1),
                     translate_[1] * (2 * bits.uniform() - 1)};
  drawn.change.scale = within(scale_, bits);
  drawn.change.shear[0] = within(shear_[0], bits);
  drawn.change.shear[1] = within(shear_[1], bits);
  return drawn;
}

void RandomAffine::change(Batch& batch, const ApplyContext& context) const {
  if (!context.training)
    return;
  RandomBits bits = draws(context);
  std::vector<Drawn> rows;
  rows.reserve(static_cast<std::size_t>(batch.size()));
  for (std::int64_t row = 0; row < batch.size(); ++row)
    rows.push_back(draw(bits));
  const auto maps_of = [&](const ImageShape& image) {
    std::vector<AffineMap> maps;
    maps.reserve(rows.size());
    for (const Drawn& row : rows) {
      AffineChange change = row.change;
      change.translate = {std::nearbyint(row.translate[0] * static_cast<double>(image.width)),
                          std::nearbyint(row.translate[1] * static_cast<double>(image.height))};
      maps.push_back(affine_map(change));
    }
    return maps;
  };
  for_each_size(images_, [&](const ImageShape& image) {
    masks_.move(batch, image, /*has_outside=*/true, [&](const at::Tensor& values, double fill) {
      return sampled(values, maps_of(image), {false, fill, /*tensors_only=*/true});
    });
  });
  Sampling sampling = sampling_;
  sampling.tensors_only = context.tensors_only;
  for (std::size_t port = 0; port < images_.size(); ++port) {
    if (!images_[port])
      continue;
    change_images(batch.inputs[port], *images_[port], [&](const at::Tensor& images) {
      return sampled(images, maps_of(*images_[port]), sampling);
    });
  }
}

}  // namespace treadle::augmentation
