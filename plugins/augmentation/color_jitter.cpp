#include "color_jitter.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle::augmentation {
namespace {

std::array<double, 2> about_one(double reach) {
  return {std::max(0.0, 1 - reach), 1 + reach};
}

}  // namespace

ColorJitter::ColorJitter(const Config& config)
    : Augmentation(config, "color_jitter"),
      choice_(config, component()),
      levels_(config, component()),
      kinds_{Kind{color::brightness, about_one(config.get_or("brightness", 0.2))},
             Kind{color::contrast, about_one(config.get_or("contrast", 0.2))},
             Kind{color::saturation, about_one(config.get_or("saturation", 0.0)), true},
             Kind{color::hue, {-config.get_or("hue", 0.0), config.get_or("hue", 0.0)}, true}} {
  if (std::none_of(kinds_.begin(), kinds_.end(), [](const Kind& kind) { return kind.is_used(); }))
    config.fail("brightness", "must be above 0, or one of contrast, saturation and hue");
}

ColorJitter::~ColorJitter() = default;

std::vector<std::optional<ImageShape>> ColorJitter::choose(const DataSpec& spec) const {
  std::vector<std::optional<ImageShape>> images = choice_.choose(spec);
  const bool needs_rgb = std::any_of(kinds_.begin(), kinds_.end(), [](const Kind& kind) {
    return kind.needs_rgb && kind.is_used();
  });
  for (std::size_t port = 0; port < images.size(); ++port) {
    if (needs_rgb && images[port] && images[port]->channels != 3) {
      throw DataError(component() + ": input " + quote_text(spec.inputs[port].name) + " has " +
                      std::to_string(images[port]->channels) +
                      " channels; \"saturation\" and \"hue\" need red, green and blue: leave them "
                      "out, or name other inputs");
    }
  }
  return images;
}

DataSpec ColorJitter::do_output_spec(const DataSpec& before) const {
  choose(before);
  return before;
}

void ColorJitter::change(Batch& batch, const ApplyContext& context) const {
  if (!context.training)
    return;
  const auto count = static_cast<std::size_t>(batch.size());
  std::array<std::vector<double>, kKinds> factors;
  std::fill(factors.begin(), factors.end(), std::vector<double>(count));
  // By the place in the order: which rows have which kind there.
  std::array<std::array<std::vector<std::int64_t>, kKinds>, kKinds> rows_at;
  RandomBits bits = draws(context);
  for (std::size_t row = 0; row < count; ++row) {
    RandomBits of_row(bits.next());
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      const auto& [low, high] = kinds_[kind].range;
      factors[kind][row] = low + (high - low) * of_row.uniform();
    }
    std::array<std::int64_t, kKinds> order{};
    std::iota(order.begin(), order.end(), 0);
    of_row.shuffle(order);
    for (std::size_t place = 0; place < kKinds; ++place)
      rows_at[place][static_cast<std::size_t>(order[place])].push_back(
          static_cast<std::int64_t>(row));
  }
  for (std::size_t port = 0; port < images_.size(); ++port) {
    if (!images_[port])
      continue;
    change_images(batch.inputs[port], *images_[port], [&](const at::Tensor& images) {
      for (const auto& rows_of : rows_at) {
        for (std::size_t kind = 0; kind < kKinds; ++kind) {
          if (!kinds_[kind].is_used())
            continue;
          levels_.change(images, rows_of[kind], [&](const color::Levels& levels) {
            return kinds_[kind].change(levels, factors_of(factors[kind], rows_of[kind], levels));
          });
        }
      }
      return images;
    });
  }
}

}  // namespace treadle::augmentation
