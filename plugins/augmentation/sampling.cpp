#include "sampling.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <treadle/base/error.h>

#include "image_choice.h"
#include "rounding.h"

namespace treadle::augmentation {
namespace {

/// Images of N rows; both ways below compute in the same order, so that their bits are equal.
struct Shape {
  std::int64_t channels;
  std::int64_t height;
  std::int64_t width;

  double middle_x() const { return static_cast<double>(width - 1) / 2; }
  double middle_y() const { return static_cast<double>(height - 1) / 2; }
};

/// The type of sums: float32 for bytes.
template <typename T>
using Computed = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename T>
T as_pixel(Computed<T> value) {
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    return static_cast<T>(rounded(std::clamp(value, 0.0F, 255.0F)));
  } else {
    return value;
  }
}

/// Cheaper than std::floor without SSE 4.1. Far outside of the image nothing depends on the value.
std::int64_t floor_of(double value) {
  const double near = std::clamp(value, -1e9, 1e9);
  const auto whole = static_cast<std::int64_t>(near);
  return whole - static_cast<std::int64_t>(static_cast<double>(whole) > near);
}

/// One image and its result.
template <typename T>
class Lookup {
 public:
  Lookup(const T* source, T* result, const Shape& shape, T fill)
      : source_(source), result_(result), shape_(shape), fill_(fill) {}

  void run(const AffineMap& map, bool is_bilinear) {
    const auto& m = map.m;
    for (std::int64_t i = 0; i < shape_.height; ++i) {
      const double y = static_cast<double>(i) - shape_.middle_y();
      for (std::int64_t j = 0; j < shape_.width; ++j) {
        const double x = static_cast<double>(j) - shape_.middle_x();
        const double from_x = m[0] * x + m[1] * y + m[2] + shape_.middle_x();
        const double from_y = m[3] * x + m[4] * y + m[5] + shape_.middle_y();
        T* const to = result_ + i * shape_.width + j;
        is_bilinear ? between(from_x, from_y, to) : nearest(from_x, from_y, to);
      }
    }
  }

 private:
  bool has(std::int64_t x, std::int64_t y) const {
    return x >= 0 && x < shape_.width && y >= 0 && y < shape_.height;
  }

  void nearest(double x, double y, T* to) const {
    const std::int64_t plane = shape_.height * shape_.width;
    const auto column = static_cast<std::int64_t>(rounded(std::clamp(x, -1e9, 1e9)));
    const auto line = static_cast<std::int64_t>(rounded(std::clamp(y, -1e9, 1e9)));
    const bool is_inside = has(column, line);
    const T* from = source_ + (is_inside ? line * shape_.width + column : 0);
    for (std::int64_t channel = 0; channel < shape_.channels; ++channel)
      to[channel * plane] = is_inside ? from[channel * plane] : fill_;
  }

  void between(double x, double y, T* to) const {
    using Real = Computed<T>;
    const std::int64_t plane = shape_.height * shape_.width;
    const std::int64_t left = floor_of(x);
    const std::int64_t top = floor_of(y);
    const auto right_share = static_cast<Real>(x - static_cast<double>(left));
    const auto lower_share = static_cast<Real>(y - static_cast<double>(top));
    const Real left_share = Real{1} - right_share;
    const Real upper_share = Real{1} - lower_share;
    const auto each_channel = [&](const auto& at) {
      for (std::int64_t channel = 0; channel < shape_.channels; ++channel) {
        const std::int64_t begin = channel * plane + top * shape_.width + left;
        const Real upper = at(begin, 0, 0) * left_share + at(begin, 0, 1) * right_share;
        const Real lower = at(begin, 1, 0) * left_share + at(begin, 1, 1) * right_share;
        to[channel * plane] = as_pixel<T>(upper * upper_share + lower * lower_share);
      }
    };
    const auto pixel = [&](std::int64_t begin, std::int64_t down, std::int64_t right) {
      return static_cast<Real>(source_[begin + down * shape_.width + right]);
    };
    if (left >= 0 && top >= 0 && left < shape_.width - 1 && top < shape_.height - 1) {
      each_channel(pixel);
    } else {
      each_channel([&](std::int64_t begin, std::int64_t down, std::int64_t right) {
        return has(left + right, top + down) ? pixel(begin, down, right) : static_cast<Real>(fill_);
      });
    }
  }

  const T* source_;
  T* result_;
  const Shape& shape_;
  T fill_;
};

template <typename T>
void look_up_all(const at::Tensor& images, std::span<const AffineMap> maps,
                 const Sampling& sampling, const Shape& shape, at::Tensor& results) {
  const std::int64_t size = shape.channels * shape.height * shape.width;
  const T* source = images.data_ptr<T>();
  T* result = results.data_ptr<T>();
  for (const AffineMap& map : maps) {
    if (map.is_identity()) {
      std::copy_n(source, size, result);
    } else {
      Lookup<T>(source, result, shape, static_cast<T>(sampling.fill))
          .run(map, sampling.is_bilinear);
    }
    source += size;
    result += size;
  }
}

/// The same by tensor operations. Coordinates are [N, height, width], float64.
class TensorLookup {
 public:
  TensorLookup(const at::Tensor& images, std::span<const AffineMap> maps, const Shape& shape,
               double fill)
      : images_(images), shape_(shape), fill_(fill) {
    const auto rows = static_cast<std::int64_t>(maps.size());
    at::Tensor on_host = at::empty({6, rows, 1, 1}, at::kDouble);
    auto* const numbers = on_host.data_ptr<double>();
    for (std::size_t row = 0; row < maps.size(); ++row) {
      for (std::size_t k = 0; k < 6; ++k)
        numbers[k * maps.size() + row] = maps[row].m[k];
    }
    const at::Tensor m = on_host.to(images.device(), at::kDouble, /*non_blocking=*/true);
    const at::Tensor x = at::arange(shape.width, m.options()).sub(shape.middle_x());
    const at::Tensor y =
        at::arange(shape.height, m.options()).sub(shape.middle_y()).view({shape.height, 1});
    x_ = m[0].mul(x).add(m[1].mul(y)).add(m[2]).add(shape.middle_x()).clamp(-1e9, 1e9);
    y_ = m[3].mul(x).add(m[4].mul(y)).add(m[5]).add(shape.middle_y()).clamp(-1e9, 1e9);
  }

  at::Tensor nearest() const { return at(x_.round().to(at::kLong), y_.round().to(at::kLong)); }

  at::Tensor between() const {
    const auto real = images_.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor left = x_.floor();
    const at::Tensor top = y_.floor();
    const at::Tensor right_share = x_.sub(left).to(real).unsqueeze(1);
    const at::Tensor lower_share = y_.sub(top).to(real).unsqueeze(1);
    const at::Tensor left_share = right_share.neg().add(1);
    const at::Tensor column = left.to(at::kLong);
    const at::Tensor line = top.to(at::kLong);
    const auto in_line = [&](const at::Tensor& y) {
      return at(column, y)
          .to(real)
          .mul(left_share)
          .add(at(column.add(1), y).to(real).mul(right_share));
    };
    at::Tensor result = in_line(line).mul(lower_share.neg().add(1));
    result = result.add(in_line(line.add(1)).mul(lower_share));
    return images_.scalar_type() == at::kByte ? result.round_().clamp_(0, 255).to(at::kByte)
                                              : result;
  }

 private:
  /// [N, channels, height, width]
  at::Tensor at(const at::Tensor& x, const at::Tensor& y) const {
    const std::int64_t rows = images_.size(0);
    const std::int64_t plane = shape_.height * shape_.width;
    const at::Tensor outside =
        x.lt(0).logical_or(x.ge(shape_.width)).logical_or(y.lt(0)).logical_or(y.ge(shape_.height));
    const at::Tensor place =
        y.clamp(0, shape_.height - 1).mul(shape_.width).add(x.clamp(0, shape_.width - 1));
    return images_.view({rows, shape_.channels, plane})
        .gather(2, place.view({rows, 1, plane}).expand({rows, shape_.channels, plane}))
        .view(images_.sizes())
        .masked_fill(outside.unsqueeze(1), fill_);
  }

  const at::Tensor& images_;
  const Shape& shape_;
  double fill_;
  at::Tensor x_;
  at::Tensor y_;
};

}  // namespace

at::Tensor sampled(const at::Tensor& images, std::span<const AffineMap> maps,
                   const Sampling& sampling) {
  TREADLE_EXPECTS(images.dim() == 4 && images.is_contiguous() &&
                      images.size(0) == static_cast<std::int64_t>(maps.size()),
                  "contiguous images [N, channels, height, width] have a map each");
  const Shape shape{images.size(1), images.size(2), images.size(3)};
  if (images.numel() == 0)
    return images;
  if (sampling.tensors_only) {
    const TensorLookup lookup(images, maps, shape, sampling.fill);
    return sampling.is_bilinear ? lookup.between() : lookup.nearest();
  }
  at::Tensor results = at::empty_like(images);
  with_pixel_of(images, [&](auto pixel) {
    look_up_all<decltype(pixel)>(images, maps, sampling, shape, results);
  });
  return results;
}

}  // namespace treadle::augmentation
