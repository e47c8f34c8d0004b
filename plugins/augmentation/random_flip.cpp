#include "random_flip.h"

#include <algorithm>
#include <cstdint>

#include <ATen/ops/empty.h>
#include <ATen/ops/where.h>

namespace treadle::augmentation {
namespace {

struct Mirrored {
  bool horizontally = false;
  bool vertically = false;
};

template <typename T>
void mirror(T* image, const ImageShape& shape, const Mirrored& how) {
  for (std::int64_t channel = 0; channel < shape.channels; ++channel) {
    T* const top = image + channel * shape.height * shape.width;
    if (how.horizontally) {
      for (std::int64_t y = 0; y < shape.height; ++y)
        std::reverse(top + y * shape.width, top + (y + 1) * shape.width);
    }
    if (how.vertically) {
      for (std::int64_t y = 0; y < shape.height / 2; ++y) {
        T* const line = top + y * shape.width;
        std::swap_ranges(line, line + shape.width, top + (shape.height - 1 - y) * shape.width);
      }
    }
  }
}

template <typename T>
void mirror_all(at::Tensor& images, const ImageShape& shape, const std::vector<Mirrored>& rows) {
  T* image = images.data_ptr<T>();
  for (const Mirrored& row : rows) {
    mirror(image, shape, row);
    image += shape.numel();
  }
}

/// The same by tensor operations.
void mirror_where(at::Tensor& images, const std::vector<Mirrored>& rows,
                  bool Mirrored::*is_mirrored, std::int64_t dimension) {
  at::Tensor chosen = at::empty({static_cast<std::int64_t>(rows.size())}, at::kBool);
  bool* next = chosen.data_ptr<bool>();
  for (const Mirrored& row : rows)
    *next++ = row.*is_mirrored;
  images = at::where(per_row(chosen, images), images.flip(dimension), images);
}

}  // namespace

RandomFlip::RandomFlip(const Config& config)
    : Augmentation(config, "random_flip"),
      choice_(config, component()),
      horizontal_(config.get_or("horizontal", 0.5)),
      vertical_(config.get_or("vertical", 0.0)) {}

RandomFlip::~RandomFlip() = default;

void RandomFlip::prepare(const DataSpec& before) {
  images_ = choice_.choose(before);
  masks_ = Masks(before, images_, component());
}

DataSpec RandomFlip::do_output_spec(const DataSpec& before) const {
  choice_.choose(before);
  return before;
}

void RandomFlip::change(Batch& batch, const ApplyContext& context) const {
  if (!context.training)
    return;
  // Both are drawn for each row, whatever the probabilities: another one changes nothing else.
  RandomBits bits = draws(context);
  std::vector<Mirrored> rows(static_cast<std::size_t>(batch.size()));
  for (Mirrored& row : rows) {
    row.horizontally = bits.uniform() < horizontal_;
    row.vertically = bits.uniform() < vertical_;
  }
  const auto mirror_each = [&](at::Tensor& images) {
    if (horizontal_ > 0)
      mirror_where(images, rows, &Mirrored::horizontally, -1);
    if (vertical_ > 0)
      mirror_where(images, rows, &Mirrored::vertically, -2);
  };
  for_each_size(images_, [&](const ImageShape& image) {
    masks_.move(batch, image, /*has_outside=*/false, [&](at::Tensor values, double) {
      mirror_each(values);
      return values;
    });
  });
  for (std::size_t port = 0; port < images_.size(); ++port) {
    if (!images_[port])
      continue;
    at::Tensor& images = batch.inputs[port];
    expect_images(images, *images_[port]);
    if (context.tensors_only) {
      mirror_each(images);
      continue;
    }
    with_pixel_of(images,
                  [&](auto pixel) { mirror_all<decltype(pixel)>(images, *images_[port], rows); });
  }
}

}  // namespace treadle::augmentation
