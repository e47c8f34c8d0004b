#include "random_crop.h"

#include <algorithm>
#include <cstring>

#include <ATen/ops/empty.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle::augmentation {
namespace {

/// Where a row's window lies, as fractions of the room there is: the same for all its inputs.
struct Corner {
  double down = 0;
  double right = 0;
};

std::int64_t at_fraction(double fraction, std::int64_t room) {
  return static_cast<std::int64_t>(fraction * static_cast<double>(room + 1));
}

/// One plane of pixels, or a window in it.
template <typename T>
struct Plane {
  T* pixels;
  std::int64_t height;
  std::int64_t width;
};

// The window's upper left corner lies at (top, left) of the image, which it may reach over.
// `window` may be `image` itself when it has its size: lines are then taken in the order in which
// none is overwritten before it is read.
template <typename T>
void cut(const Plane<T>& image, std::int64_t top, std::int64_t left, T fill,
         const Plane<T>& window) {
  const std::int64_t begin = std::clamp<std::int64_t>(-left, 0, window.width);
  const std::int64_t end = std::clamp(image.width - left, begin, window.width);
  for (std::int64_t i = 0; i < window.height; ++i) {
    const std::int64_t y = top >= 0 ? i : window.height - 1 - i;
    T* const line = window.pixels + y * window.width;
    const std::int64_t source = y + top;
    if (source < 0 || source >= image.height || begin == end) {
      std::fill_n(line, window.width, fill);
      continue;
    }
    std::memmove(line + begin, image.pixels + source * image.width + left + begin,
                 static_cast<std::size_t>(end - begin) * sizeof(T));
    std::fill(line, line + begin, fill);
    std::fill(line + end, line + window.width, fill);
  }
}

struct Cutting {
  ImageShape from;
  ImageShape to;
  std::int64_t padding;
  double fill;
};

template <typename T>
void cut_all(const at::Tensor& images, const Cutting& cutting, const std::vector<Corner>& corners,
             at::Tensor& windows) {
  const auto& [from, to, padding, fill] = cutting;
  T* source = images.data_ptr<T>();
  T* target = windows.data_ptr<T>();
  const std::int64_t down = from.height + 2 * padding - to.height;
  const std::int64_t right = from.width + 2 * padding - to.width;
  for (const Corner& corner : corners) {
    const std::int64_t top = at_fraction(corner.down, down) - padding;
    const std::int64_t left = at_fraction(corner.right, right) - padding;
    for (std::int64_t channel = 0; channel < from.channels; ++channel) {
      cut(Plane<T>{source, from.height, from.width}, top, left, static_cast<T>(fill),
          Plane<T>{target, to.height, to.width});
      source += from.height * from.width;
      target += to.height * to.width;
    }
  }
}

}  // namespace

RandomCrop::RandomCrop(const Config& config)
    : Augmentation(config, "random_crop"),
      choice_(config, component()),
      padding_(config.get_or("padding", std::int64_t{config.has("size") ? 0 : 4})),
      fill_(config.get_or("fill", 0.0)) {
  if (!config.has("size")) {
    if (padding_ == 0)
      config.fail("padding",
                  "must be at least 1 without \"size\", or the window has one place only");
    return;
  }
  const bool is_square = config.json()["size"].is_number();
  const auto sides = is_square ? std::vector<std::int64_t>(2, config.get<std::int64_t>("size"))
                               : config.get<std::vector<std::int64_t>>("size");
  if (sides.size() != 2)
    config.fail("size", "must be one number, or height and width");
  size_ = Size{sides[0], sides[1]};
}

RandomCrop::~RandomCrop() = default;

std::vector<std::optional<ImageShape>> RandomCrop::choose(const DataSpec& spec) const {
  std::vector<std::optional<ImageShape>> images = choice_.choose(spec);
  for (std::size_t port = 0; port < images.size(); ++port) {
    if (!images[port] || !size_)
      continue;
    const ImageShape& image = *images[port];
    if (size_->height > image.height || size_->width > image.width) {
      throw DataError(component() + ": input " + quote_text(spec.inputs[port].name) + " is " +
                      std::to_string(image.height) + " x " + std::to_string(image.width) +
                      "; \"size\" must not be larger, got " + std::to_string(size_->height) +
                      " x " + std::to_string(size_->width));
    }
  }
  return images;
}

DataSpec RandomCrop::do_output_spec(const DataSpec& before) const {
  const std::vector<std::optional<ImageShape>> images = choose(before);
  DataSpec after = before;
  for (std::size_t port = 0; port < images.size(); ++port) {
    if (!images[port])
      continue;
    std::vector<std::int64_t>& shape = after.inputs[port].shape;
    const Size window = window_of(*images[port]);
    shape[shape.size() - 2] = window.height;
    shape[shape.size() - 1] = window.width;
  }
  return after;
}

void RandomCrop::change(Batch& batch, const ApplyContext& context) const {
  std::vector<Corner> corners(static_cast<std::size_t>(batch.size()));
  if (context.training) {
    RandomBits bits = draws(context);
    for (Corner& corner : corners) {
      corner.down = bits.uniform();
      corner.right = bits.uniform();
    }
  }
  for (std::size_t port = 0; port < images_.size(); ++port) {
    if (!images_[port])
      continue;
    const ImageShape& image = *images_[port];
    const Size window = window_of(image);
    const bool stays = window.height == image.height && window.width == image.width;
    if (stays && !context.training)
      continue;
    at::Tensor& images = batch.inputs[port];
    expect_images(images, image);
    Cutting cutting{image, {image.channels, window.height, window.width}, padding_, fill_};
    if (!context.training) {
      // A window whose only place is the middle.
      const std::int64_t top = (image.height - window.height) / 2;
      const std::int64_t left = (image.width - window.width) / 2;
      const at::Tensor middle =
          images.narrow(-2, top, window.height).narrow(-1, left, window.width);
      images = middle.contiguous();
      continue;
    }
    at::Tensor windows = images;
    if (!stays) {
      std::vector<std::int64_t> shape = images.sizes().vec();
      shape[shape.size() - 2] = window.height;
      shape[shape.size() - 1] = window.width;
      windows = at::empty(shape, images.options());
    }
    if (images.scalar_type() == at::kFloat) {
      cut_all<float>(images, cutting, corners, windows);
    } else {
      cut_all<double>(images, cutting, corners, windows);
    }
    images = windows;
  }
}

}  // namespace treadle::augmentation
