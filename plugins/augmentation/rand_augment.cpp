#include "rand_augment.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

#include <treadle/base/error.h>

#include "color.h"

namespace treadle::augmentation {

DrawnOperations::DrawnOperations(const Config& config, std::string component, const Space& space,
                                 std::int64_t operations)
    : Augmentation(config, std::move(component)),
      choice_(config, this->component()),
      levels_(config, this->component()),
      space_(space),
      operations_(operations),
      bins_(config.get_or("num_magnitude_bins", std::int64_t{31})) {
  sampling_.is_bilinear = config.get_or("interpolation", std::string("nearest")) == "bilinear";
  sampling_.fill = config.get_or("fill", 0.0);
}

DrawnOperations::~DrawnOperations() = default;

void DrawnOperations::prepare(const DataSpec& before) {
  images_ = choice_.choose(before);
  masks_ = Masks(before, images_, component());
}

bool DrawnOperations::do_takes_bytes() const {
  const double fill = sampling_.fill;
  return fill >= 0 && fill <= 255 && fill == std::trunc(fill);
}

DataSpec DrawnOperations::do_output_spec(const DataSpec& before) const {
  choice_.choose(before);
  return before;
}

/// As many numbers for each, whatever they are.
DrawnOperations::Operation DrawnOperations::draw(RandomBits& bits) const {
  Operation operation;
  operation.kind = static_cast<Kind>(bits.below(kKinds));
  operation.strength = static_cast<double>(draw_bin(bits)) / static_cast<double>(bins_ - 1);
  operation.is_negative = bits.uniform() < 0.5;
  return operation;
}

AffineMap DrawnOperations::map_of(const Operation& operation, const ImageShape& image) const {
  const double sign = operation.is_negative ? -1 : 1;
  const double degrees = 180 / std::numbers::pi;
  AffineChange change;
  // As PIL shears: the upper left corner of the image stays.
  const std::array<double, 2> corner = {-static_cast<double>(image.width) / 2,
                                        -static_cast<double>(image.height) / 2};
  const auto moved = [&](std::int64_t extent) {
    const double most = space_.translate_pixels > 0
                            ? space_.translate_pixels
                            : space_.translate_share * static_cast<double>(extent);
    return std::trunc(sign * most * operation.strength);
  };
  switch (operation.kind) {
    case Kind::kShearX:
    case Kind::kShearY:
      change.shear[operation.kind == Kind::kShearX ? 0 : 1] =
          degrees * std::atan(sign * space_.shear * operation.strength);
      change.about = corner;
      break;
    case Kind::kTranslateX:
      change.translate[0] = moved(image.width);
      break;
    case Kind::kTranslateY:
      change.translate[1] = moved(image.height);
      break;
    case Kind::kRotate:
      change.angle = -sign * space_.rotate * operation.strength;
      break;
    default:
      return {};
  }
  return affine_map(change);
}

std::vector<AffineMap> DrawnOperations::maps_of(const std::vector<Operation>& rows,
                                                const ImageShape& image) const {
  std::vector<AffineMap> maps;
  maps.reserve(rows.size());
  for (const Operation& row : rows)
    maps.push_back(map_of(row, image));
  return maps;
}

void DrawnOperations::change_levels(const at::Tensor& images,
                                    const std::vector<Operation>& rows) const {
  // Rows of one operation together; with one strength, but for the sign of a factor.
  std::map<std::pair<Kind, double>, std::vector<std::int64_t>> same;
  std::vector<double> factors(rows.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const Operation& operation = rows[row];
    factors[row] = 1 + (operation.is_negative ? -1 : 1) * space_.color * operation.strength;
    const bool has_factor =
        operation.kind >= Kind::kBrightness && operation.kind <= Kind::kSharpness;
    same[{operation.kind, has_factor ? 0 : operation.strength}].push_back(
        static_cast<std::int64_t>(row));
  }
  for (const auto& [key, numbers] : same) {
    const auto change = [&, &numbers = numbers](auto&& of_levels) {
      levels_.change(images, numbers, of_levels);
    };
    const auto by_factor = [&, &numbers = numbers](auto* of_levels) {
      levels_.change(images, numbers, [&](const color::Levels& levels) {
        return of_levels(levels, factors_of(factors, numbers, levels));
      });
    };
    const double strength = key.second;
    switch (key.first) {
      case Kind::kBrightness:
        by_factor(&color::brightness);
        break;
      case Kind::kColor:
        by_factor(&color::saturation);
        break;
      case Kind::kContrast:
        by_factor(&color::contrast);
        break;
      case Kind::kSharpness:
        by_factor(&color::sharpness);
        break;
      case Kind::kPosterize: {
        const auto bits =
            8 - static_cast<std::int64_t>(std::nearbyint(space_.posterized_bits * strength));
        change([&](const color::Levels& levels) { return color::posterize(levels, bits); });
        break;
      }
      case Kind::kSolarize:
        change([&](const color::Levels& levels) {
          return color::solarize(levels, 255 * (1 - strength));
        });
        break;
      case Kind::kAutoContrast:
        change(&color::autocontrast);
        break;
      case Kind::kEqualize:
        change(&color::equalize);
        break;
      default:
        break;
    }
  }
}

void DrawnOperations::run(Batch& batch, const std::vector<Operation>& rows,
                          bool tensors_only) const {
  Sampling sampling = sampling_;
  sampling.tensors_only = tensors_only;
  for_each_size(images_, [&](const ImageShape& image) {
    masks_.move(batch, image, /*has_outside=*/true, [&](const at::Tensor& values, double fill) {
      return sampled(values, maps_of(rows, image), {false, fill, /*tensors_only=*/true});
    });
  });
  for (std::size_t port = 0; port < images_.size(); ++port) {
    if (!images_[port])
      continue;
    change_images(batch.inputs[port], *images_[port], [&](const at::Tensor& images) {
      const at::Tensor moved = sampled(images, maps_of(rows, *images_[port]), sampling);
      change_levels(moved, rows);
      return moved;
    });
  }
}

void DrawnOperations::change(Batch& batch, const ApplyContext& context) const {
  if (!context.training)
    return;
  RandomBits bits = draws(context);
  std::vector<RandomBits> of_rows;
  of_rows.reserve(static_cast<std::size_t>(batch.size()));
  for (std::int64_t row = 0; row < batch.size(); ++row)
    of_rows.emplace_back(bits.next());
  std::vector<Operation> operations(of_rows.size());
  for (std::int64_t i = 0; i < operations_; ++i) {
    std::transform(of_rows.begin(), of_rows.end(), operations.begin(),
                   [this](RandomBits& of_row) { return draw(of_row); });
    run(batch, operations, context.tensors_only);
  }
}

RandAugment::RandAugment(const Config& config)
    : DrawnOperations(config, "rand_augment",
                      {.shear = 0.3,
                       .translate_pixels = 0,
                       .translate_share = 150.0 / 331,
                       .rotate = 30,
                       .color = 0.9,
                       .posterized_bits = 4},
                      config.get_or("num_ops", std::int64_t{2})),
      magnitude_(config.get_or("magnitude", std::int64_t{9})) {
  if (magnitude_ >= bins())
    config.fail("magnitude", "must be below \"num_magnitude_bins\"");
}

RandAugment::~RandAugment() = default;

TrivialAugment::TrivialAugment(const Config& config)
    : DrawnOperations(config, "trivial_augment",
                      {.shear = 0.99,
                       .translate_pixels = 32,
                       .translate_share = 0,
                       .rotate = 135,
                       .color = 0.99,
                       .posterized_bits = 6},
                      1) {}

TrivialAugment::~TrivialAugment() = default;

}  // namespace treadle::augmentation
