#include "random_crop.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <ATen/TensorIndexing.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
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

/// Where the first line and column of a row's window lie in the image; negative: in the padding.
std::int64_t top_of(const Corner& corner, const Cutting& cutting) {
  return at_fraction(corner.down, cutting.from.height + 2 * cutting.padding - cutting.to.height) -
         cutting.padding;
}
std::int64_t left_of(const Corner& corner, const Cutting& cutting) {
  return at_fraction(corner.right, cutting.from.width + 2 * cutting.padding - cutting.to.width) -
         cutting.padding;
}

template <typename T>
void cut_all(const at::Tensor& images, const Cutting& cutting, const std::vector<Corner>& corners,
             at::Tensor& windows) {
  const auto& [from, to, padding, fill] = cutting;
  T* source = images.data_ptr<T>();
  T* target = windows.data_ptr<T>();
  for (const Corner& corner : corners) {
    const std::int64_t top = top_of(corner, cutting);
    const std::int64_t left = left_of(corner, cutting);
    for (std::int64_t channel = 0; channel < from.channels; ++channel) {
      cut(Plane<T>{source, from.height, from.width}, top, left, static_cast<T>(fill),
          Plane<T>{target, to.height, to.width});
      source += from.height * from.width;
      target += to.height * to.width;
    }
  }
}

/// The window in the middle, of rows of evaluation.
at::Tensor middle_of(const at::Tensor& images, std::int64_t height, std::int64_t width) {
  const std::int64_t top = (images.size(-2) - height) / 2;
  const std::int64_t left = (images.size(-1) - width) / 2;
  return images.narrow(-2, top, height).narrow(-1, left, width).contiguous();
}

/// The same by tensor operations: each window is looked up in its image, [B, C, height, width].
at::Tensor looked_up(const at::Tensor& images, const Cutting& cutting,
                     const std::vector<Corner>& corners) {
  const auto& [from, to, padding, fill] = cutting;
  const std::int64_t rows = images.size(0);
  at::Tensor on_host = at::empty({2, rows}, at::kLong);
  auto* const first = on_host.data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < corners.size(); ++i) {
    first[i] = top_of(corners[i], cutting);
    first[i + corners.size()] = left_of(corners[i], cutting);
  }
  const at::Tensor corner = on_host.to(images.device(), at::kLong, /*non_blocking=*/true);
  const at::TensorOptions index = corner.options();
  const at::Tensor y =
      corner[0].view({rows, 1, 1, 1}) + at::arange(to.height, index).view({to.height, 1});
  const at::Tensor x = corner[1].view({rows, 1, 1, 1}) + at::arange(to.width, index);
  at::Tensor windows = images.view({rows, from.channels, from.height, from.width})
                           .index({at::arange(rows, index).view({rows, 1, 1, 1}),
                                   at::arange(from.channels, index).view({from.channels, 1, 1}),
                                   y.clamp(0, from.height - 1), x.clamp(0, from.width - 1)});
  if (padding > 0) {
    const at::Tensor beyond =
        y.lt(0).logical_or(y.ge(from.height)).logical_or(x.lt(0)).logical_or(x.ge(from.width));
    windows.masked_fill_(beyond, fill);
  }
  std::vector<std::int64_t> shape = images.sizes().vec();
  shape[shape.size() - 2] = to.height;
  shape[shape.size() - 1] = to.width;
  return windows.view(shape);
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

bool RandomCrop::do_takes_bytes() const {
  return fill_ >= 0 && fill_ <= 255 && fill_ == std::trunc(fill_);
}

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

void RandomCrop::prepare(const DataSpec& before) {
  images_ = choose(before);
  masks_ = Masks(before, images_, component());
}

DataSpec RandomCrop::do_output_spec(const DataSpec& before) const {
  const std::vector<std::optional<ImageShape>> images = choose(before);
  DataSpec after = before;
  const Masks masks(before, images, component());
  for_each_size(images, [&](const ImageShape& image) {
    const Size window = window_of(image);
    masks.resize(after, image, window.height, window.width);
  });
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
  for_each_size(images_, [&](const ImageShape& image) {
    const Size window = window_of(image);
    if (!context.training && window.height == image.height && window.width == image.width)
      return;
    masks_.resize(batch, image, context.training && padding_ > 0,
                  [&](const at::Tensor& values, double fill) {
                    if (!context.training)
                      return middle_of(values, window.height, window.width);
                    const ImageShape from{values.size(1), image.height, image.width};
                    const ImageShape to{values.size(1), window.height, window.width};
                    return looked_up(values, {from, to, padding_, fill}, corners);
                  });
  });
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
    const Cutting cutting{image, {image.channels, window.height, window.width}, padding_, fill_};
    if (!context.training) {
      images = middle_of(images, window.height, window.width);
      continue;
    }
    if (context.tensors_only) {
      images = looked_up(images, cutting, corners);
      continue;
    }
    at::Tensor windows = images;
    if (!stays) {
      std::vector<std::int64_t> shape = images.sizes().vec();
      shape[shape.size() - 2] = window.height;
      shape[shape.size() - 1] = window.width;
      windows = at::empty(shape, images.options());
    }
    with_pixel_of(images,
                  [&](auto pixel) { cut_all<decltype(pixel)>(images, cutting, corners, windows); });
    images = windows;
  }
}

}  // namespace treadle::augmentation
