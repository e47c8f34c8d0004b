#include "color.h"

#include <array>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

namespace treadle::augmentation::color {
namespace {

constexpr double kWhite = 255;
constexpr double kRed = 0.2989;
constexpr double kGreen = 0.587;
constexpr double kBlue = 0.114;

at::Tensor channel(const at::Tensor& images, std::int64_t number) {
  return images.narrow(1, number, 1);
}

bool is_rgb(const at::Tensor& images) {
  return images.size(1) == 3;
}

/// [N, 1, height, width]; expects three channels.
at::Tensor gray(const Levels& levels) {
  const at::Tensor& images = levels.images;
  const at::Tensor sum = channel(images, 0)
                             .mul(kRed)
                             .add(channel(images, 1).mul(kGreen))
                             .add(channel(images, 2).mul(kBlue));
  return levels.of_bytes ? sum.floor() : sum;
}

at::Tensor blended(const at::Tensor& images, const at::Tensor& others, const at::Tensor& factors) {
  return images.mul(factors).add(others.mul(factors.neg().add(1))).clamp(0, kWhite);
}

}  // namespace

at::Tensor brightness(const Levels& levels, const at::Tensor& factors) {
  return levels.images.mul(factors).clamp(0, kWhite);
}

at::Tensor contrast(const Levels& levels, const at::Tensor& factors) {
  const at::Tensor grays = is_rgb(levels.images) ? gray(levels) : levels.images;
  // In float64, where the order of additions does not show in a level.
  const at::Tensor mean = grays.mean(at::IntArrayRef{1, 2, 3}, /*keepdim=*/true, at::kDouble);
  return blended(levels.images, mean.to(levels.images.scalar_type()), factors);
}

at::Tensor saturation(const Levels& levels, const at::Tensor& factors) {
  return is_rgb(levels.images) ? blended(levels.images, gray(levels), factors) : levels.images;
}

at::Tensor hue(const Levels& levels, const at::Tensor& turns) {
  const at::Tensor red = channel(levels.images, 0);
  const at::Tensor green = channel(levels.images, 1);
  const at::Tensor blue = channel(levels.images, 2);
  // To hue, saturation and value; hues are sixths of the circle here.
  const at::Tensor value = levels.images.amax(1, /*keepdim=*/true);
  const at::Tensor spread = value.sub(levels.images.amin(1, /*keepdim=*/true));
  const at::Tensor is_gray = spread.eq(0);
  const at::Tensor divisor = spread.masked_fill(is_gray, 1);
  const at::Tensor from_red = green.sub(blue).div(divisor);
  const at::Tensor from_green = blue.sub(red).div(divisor).add(2);
  const at::Tensor from_blue = red.sub(green).div(divisor).add(4);
  const at::Tensor hues =
      at::where(value.eq(red), from_red, at::where(value.eq(green), from_green, from_blue))
          .masked_fill(is_gray, 0);
  const at::Tensor turned = hues.div(6).add(turns).remainder(1).mul(6);
  // And back: a channel is value - spread * clamp(min(k, 4 - k), 0, 1), k = (n + hue) mod 6, where
  // n is 5 for red, 3 for green and 1 for blue.
  const auto back = [&](double n) {
    const at::Tensor k = turned.add(n).remainder(6);
    return value.sub(spread.mul(at::minimum(k, k.neg().add(4)).clamp(0, 1)));
  };
  const at::Tensor result = at::cat({back(5), back(3), back(1)}, 1);
  // Bytes are cut off later: 254.99 has been 255.
  return (levels.of_bytes ? result.mul((kWhite + 1 - 1e-3) / kWhite) : result).clamp(0, kWhite);
}

at::Tensor sharpness(const Levels& levels, const at::Tensor& factors) {
  const std::int64_t height = levels.images.size(2);
  const std::int64_t width = levels.images.size(3);
  if (height <= 2 || width <= 2)
    return levels.images;
  const auto shifted = [&](std::int64_t down, std::int64_t right) {
    return levels.images.narrow(2, down, height - 2).narrow(3, right, width - 2);
  };
  const at::Tensor middle = shifted(1, 1);
  at::Tensor sum = middle.mul(5);
  for (const std::int64_t down : {0, 1, 2}) {
    for (const std::int64_t right : {0, 1, 2}) {
      if (down != 1 || right != 1)
        sum.add_(shifted(down, right));
    }
  }
  at::Tensor smoothed = sum.div_(13);
  if (levels.of_bytes)
    smoothed.round_();
  at::Tensor result = levels.images.clone();
  result.narrow(2, 1, height - 2)
      .narrow(3, 1, width - 2)
      .copy_(middle.add(smoothed.sub_(middle).mul_(factors.neg().add(1))).clamp_(0, kWhite));
  return result;
}

at::Tensor posterize(const Levels& levels, std::int64_t bits) {
  const auto step = static_cast<double>(std::int64_t{1} << (8 - bits));
  return levels.images.div(step).floor().mul(step);
}

at::Tensor solarize(const Levels& levels, double threshold) {
  return at::where(levels.images.ge(threshold), levels.images.neg().add(kWhite), levels.images);
}

at::Tensor autocontrast(const Levels& levels) {
  const std::array<std::int64_t, 2> pixels = {2, 3};
  const at::Tensor lowest = levels.images.amin(pixels, /*keepdim=*/true);
  const at::Tensor spread = levels.images.amax(pixels, /*keepdim=*/true).sub(lowest);
  const at::Tensor is_constant = spread.eq(0);
  const at::Tensor scale = spread.mul(1 / kWhite).masked_fill(is_constant, 1);
  return levels.images.sub(lowest.masked_fill(is_constant, 0)).div(scale).clamp(0, kWhite);
}

at::Tensor equalize(const Levels& levels) {
  constexpr std::int64_t kLevels = 256;
  const at::Tensor& images = levels.images;
  const std::int64_t planes = images.size(0) * images.size(1);
  const std::int64_t pixels = images.size(2) * images.size(3);
  const at::Tensor bytes = images.floor().clamp(0, kWhite).to(at::kLong).view({planes, pixels});
  const at::Tensor counts =
      at::zeros({planes, kLevels}, bytes.options()).scatter_add_(1, bytes, at::ones_like(bytes));
  const at::Tensor sums = counts.cumsum(1);
  const at::Tensor highest = bytes.amax(1, /*keepdim=*/true);
  const at::Tensor step =
      counts.gather(1, highest).neg().add(pixels).div(kLevels - 1, "floor");  // [planes, 1]
  const at::Tensor divisor = step.clamp_min(1);
  const at::Tensor below = sums.sub(counts);  // how many pixels have a lower level
  const at::Tensor table =
      below.add(step.div(2, "floor")).div(divisor, "floor").clamp(0, kLevels - 1);
  const at::Tensor equal = table.gather(1, bytes).to(images.scalar_type()).view(images.sizes());
  return at::where(step.eq(0).view({images.size(0), images.size(1), 1, 1}), images, equal);
}

}  // namespace treadle::augmentation::color
