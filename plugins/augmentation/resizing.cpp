#include "resizing.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>
#include <vector>

#include <ATen/TensorIndexing.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include <treadle/base/error.h>

#include "image_choice.h"
#include "rounding.h"

namespace treadle::augmentation {
namespace {

/// Along one axis: which pixels each new pixel is a mean of, and with which weights. Memory is used
/// again for the next box.
template <typename Real>
class Filter {
 public:
  void set(std::int64_t begin, std::int64_t end, std::int64_t size) {
    const auto before = static_cast<double>(end - begin);
    const double scale = before / static_cast<double>(size);
    const double support = std::max(scale, 1.0);
    firsts_.resize(static_cast<std::size_t>(size));
    counts_.resize(static_cast<std::size_t>(size));
    stride_ = static_cast<std::size_t>(std::ceil(support)) * 2 + 1;
    weights_.assign(static_cast<std::size_t>(size) * stride_, 0);
    for (std::size_t i = 0; i < firsts_.size(); ++i) {
      const double center = scale * (static_cast<double>(i) + 0.5);
      const auto first =
          std::max<std::int64_t>(static_cast<std::int64_t>(center - support + 0.5), 0);
      const auto last = std::min(static_cast<std::int64_t>(center + support + 0.5), end - begin);
      double sum = 0;
      const auto weight_of = [&](std::int64_t at) {
        return std::max(0.0, 1 - std::abs((static_cast<double>(at) - center + 0.5) / support));
      };
      for (std::int64_t at = first; at < last; ++at)
        sum += weight_of(at);
      for (std::int64_t at = first; at < last; ++at)
        weights_[i * stride_ + static_cast<std::size_t>(at - first)] =
            static_cast<Real>(weight_of(at) / sum);
      firsts_[i] = begin + first;
      counts_[i] = last - first;
    }
  }

  std::size_t size() const { return firsts_.size(); }
  std::int64_t first(std::size_t i) const { return firsts_[i]; }
  std::int64_t count(std::size_t i) const { return counts_[i]; }
  const Real* weights(std::size_t i) const { return weights_.data() + i * stride_; }

 private:
  std::vector<std::int64_t> firsts_;
  std::vector<std::int64_t> counts_;
  std::vector<Real> weights_;
  std::size_t stride_ = 0;
};

/// First the lines, then the columns.
template <typename T>
class Resizer {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;

 public:
  Resizer(std::int64_t height, std::int64_t width, std::int64_t new_height, std::int64_t new_width)
      : height_(height), width_(width), new_height_(new_height), new_width_(new_width) {}

  void set(const Box& box) {
    box_ = box;
    across_.set(box.left, box.right, new_width_);
    down_.set(box.top, box.bottom, new_height_);
    lines_.resize(static_cast<std::size_t>((box.bottom - box.top) * new_width_));
    sums_.resize(static_cast<std::size_t>(new_width_));
  }

  void run(const T* plane, T* result) {
    for (std::int64_t y = box_.top; y < box_.bottom; ++y) {
      const T* const line = plane + y * width_;
      Real* const to = lines_.data() + (y - box_.top) * new_width_;
      for (std::size_t x = 0; x < across_.size(); ++x) {
        const T* const from = line + across_.first(x);
        const Real* const weights = across_.weights(x);
        Real sum = 0;
        for (std::int64_t k = 0; k < across_.count(x); ++k)
          sum += static_cast<Real>(from[k]) * weights[k];
        to[x] = sum;
      }
    }
    for (std::size_t y = 0; y < down_.size(); ++y) {
      std::fill(sums_.begin(), sums_.end(), Real{0});
      const Real* const weights = down_.weights(y);
      for (std::int64_t k = 0; k < down_.count(y); ++k) {
        const Real* const from = lines_.data() + (down_.first(y) + k - box_.top) * new_width_;
        const Real weight = weights[k];
        for (std::size_t x = 0; x < sums_.size(); ++x)
          sums_[x] += from[x] * weight;
      }
      T* const to = result + static_cast<std::int64_t>(y) * new_width_;
      for (std::size_t x = 0; x < sums_.size(); ++x) {
        if constexpr (std::is_same_v<T, std::uint8_t>) {
          to[x] = static_cast<T>(rounded(std::clamp(sums_[x], 0.0F, 255.0F)));
        } else {
          to[x] = sums_[x];
        }
      }
    }
  }

 private:
  std::int64_t height_;
  std::int64_t width_;
  std::int64_t new_height_;
  std::int64_t new_width_;
  Box box_;
  Filter<Real> across_;
  Filter<Real> down_;
  std::vector<Real> lines_;
  std::vector<Real> sums_;
};

}  // namespace

at::Tensor resized(const at::Tensor& images, std::span<const Box> boxes, std::int64_t height,
                   std::int64_t width) {
  TREADLE_EXPECTS(images.dim() == 4 && images.is_contiguous() && images.device().is_cpu() &&
                      images.size(0) == static_cast<std::int64_t>(boxes.size()),
                  "contiguous images [N, channels, height, width] have a box each");
  at::Tensor results = at::empty({images.size(0), images.size(1), height, width}, images.options());
  with_pixel_of(images, [&](auto pixel) {
    using T = decltype(pixel);
    Resizer<T> resizer(images.size(2), images.size(3), height, width);
    const T* source = images.data_ptr<T>();
    T* result = results.data_ptr<T>();
    for (const Box& box : boxes) {
      resizer.set(box);
      for (std::int64_t channel = 0; channel < images.size(1); ++channel) {
        resizer.run(source, result);
        source += images.size(2) * images.size(3);
        result += height * width;
      }
    }
  });
  return results;
}

at::Tensor resized_masks(const at::Tensor& masks, std::span<const Box> boxes, std::int64_t height,
                         std::int64_t width) {
  const auto rows = static_cast<std::int64_t>(boxes.size());
  const auto places = [&](std::int64_t size, std::int64_t Box::*begin, std::int64_t Box::*end) {
    at::Tensor all = at::empty({rows, size}, at::kLong);
    auto* next = all.data_ptr<std::int64_t>();
    for (const Box& box : boxes) {
      const std::int64_t extent = box.*end - box.*begin;
      for (std::int64_t i = 0; i < size; ++i)
        *next++ = box.*begin + i * extent / size;
    }
    return all;
  };
  const at::Tensor y = places(height, &Box::top, &Box::bottom).view({rows, 1, height, 1});
  const at::Tensor x = places(width, &Box::left, &Box::right).view({rows, 1, 1, width});
  return masks.index({at::arange(rows).view({rows, 1, 1, 1}),
                      at::arange(masks.size(1)).view({masks.size(1), 1, 1}), y, x});
}

}  // namespace treadle::augmentation
