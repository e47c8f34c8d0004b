#include "resample.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace treadle::images {
namespace {

constexpr int kFractionBits = 22;
constexpr std::int32_t kHalf = 1 << (kFractionBits - 1);

std::uint8_t byte_of(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kFractionBits, 0, 255));
}

/// One row of output pixels, each the weighted sum of neighbours in `row`.
template <std::size_t kChannels>
void scale_row(const std::uint8_t* row, std::int64_t count, const std::int64_t* first,
               const std::int64_t* taps, const std::int32_t* weights, std::int64_t width,
               std::uint8_t* out) {
  for (std::int64_t x = 0; x < count; ++x, weights += width, out += kChannels) {
    std::int32_t sums[kChannels];
    std::fill_n(sums, kChannels, kHalf);
    const std::uint8_t* pixel = row + static_cast<std::size_t>(first[x]) * kChannels;
    for (std::int64_t tap = 0; tap < taps[x]; ++tap, pixel += kChannels) {
      for (std::size_t c = 0; c < kChannels; ++c)
        sums[c] += pixel[c] * weights[tap];
    }
    for (std::size_t c = 0; c < kChannels; ++c)
      out[c] = byte_of(sums[c]);
  }
}

}  // namespace

void Resampler::Weights::prepare(std::int64_t input_side, std::int64_t output_side,
                                 std::int64_t from, std::int64_t positions) {
  if (input == input_side && output == output_side && begin == from && count == positions)
    return;
  input = input_side;
  output = output_side;
  begin = from;
  count = positions;
  const double scale = static_cast<double>(input) / static_cast<double>(output);
  const double support = std::max(scale, 1.0);
  width = static_cast<std::int64_t>(std::ceil(support)) * 2 + 1;
  first.resize(static_cast<std::size_t>(count));
  taps.resize(static_cast<std::size_t>(count));
  weights.assign(static_cast<std::size_t>(count * width), 0);
  std::vector<double> exact(static_cast<std::size_t>(width));
  for (std::int64_t i = 0; i < count; ++i) {
    const double center = (static_cast<double>(from + i) + 0.5) * scale;
    const auto low = std::max<std::int64_t>(static_cast<std::int64_t>(center - support + 0.5), 0);
    const auto high =
        std::min<std::int64_t>(static_cast<std::int64_t>(center + support + 0.5), input);
    double sum = 0;
    for (std::int64_t j = low; j < high; ++j) {
      const double distance = std::abs((static_cast<double>(j) - center + 0.5) * (1.0 / support));
      const double weight = distance < 1 ? 1 - distance : 0;
      exact[static_cast<std::size_t>(j - low)] = weight;
      sum += weight;
    }
    std::int32_t* const row = weights.data() + i * width;
    for (std::int64_t j = 0; j < high - low; ++j) {
      const double weight = exact[static_cast<std::size_t>(j)] / (sum == 0 ? 1 : sum);
      row[j] = static_cast<std::int32_t>(0.5 + weight * (1 << kFractionBits));
    }
    first[static_cast<std::size_t>(i)] = low;
    taps[static_cast<std::size_t>(i)] = high - low;
  }
}

void Resampler::scale(const Picture& picture, PictureSize scaled, std::int64_t left,
                      std::int64_t top, PictureSize part, Picture& out) {
  const auto channels = static_cast<std::size_t>(picture.channels);
  out.become(part, picture.channels);
  down_.prepare(picture.size.height, scaled.height, top, part.height);
  // Only the rows that are looked at. Of a side that keeps its length each weight but one is 0.
  const std::int64_t first_row = down_.first.front();
  const std::int64_t end_row = down_.first.back() + down_.taps.back();
  const Picture* from = &picture;
  std::int64_t row_offset = 0;
  std::int64_t column_offset = left;
  if (scaled.width != picture.size.width) {
    across_.prepare(picture.size.width, scaled.width, left, part.width);
    rows_.become({part.width, end_row - first_row}, picture.channels);
    for (std::int64_t y = first_row; y < end_row; ++y) {
      const std::uint8_t* const row =
          picture.pixels.data() + static_cast<std::size_t>(y) * picture.row_bytes();
      std::uint8_t* const to =
          rows_.pixels.data() + static_cast<std::size_t>(y - first_row) * rows_.row_bytes();
      const auto scale_channels = [&](auto count) {
        scale_row<decltype(count)::value>(row, part.width, across_.first.data(),
                                          across_.taps.data(), across_.weights.data(),
                                          across_.width, to);
      };
      switch (channels) {
        case 1:
          scale_channels(std::integral_constant<std::size_t, 1>());
          break;
        case 2:
          scale_channels(std::integral_constant<std::size_t, 2>());
          break;
        case 3:
          scale_channels(std::integral_constant<std::size_t, 3>());
          break;
        default:
          scale_channels(std::integral_constant<std::size_t, 4>());
      }
    }
    from = &rows_;
    row_offset = first_row;
    column_offset = 0;
  }
  const std::size_t bytes = out.row_bytes();
  const bool keeps_height = scaled.height == picture.size.height;
  sums_.resize(bytes);
  for (std::int64_t y = 0; y < part.height; ++y) {
    const auto at = static_cast<std::size_t>(y);
    std::uint8_t* const to = out.pixels.data() + at * bytes;
    const std::int64_t first = keeps_height ? top + y : down_.first[at];
    const std::uint8_t* row = from->pixels.data() +
                              static_cast<std::size_t>(first - row_offset) * from->row_bytes() +
                              static_cast<std::size_t>(column_offset) * channels;
    if (keeps_height) {
      std::memcpy(to, row, bytes);
      continue;
    }
    std::fill(sums_.begin(), sums_.end(), kHalf);
    const std::int32_t* const weights = down_.weights.data() + y * down_.width;
    for (std::int64_t tap = 0; tap < down_.taps[at]; ++tap, row += from->row_bytes()) {
      const std::int32_t weight = weights[tap];
      for (std::size_t i = 0; i < bytes; ++i)
        sums_[i] += row[i] * weight;
    }
    for (std::size_t i = 0; i < bytes; ++i)
      to[i] = byte_of(sums_[i]);
  }
}

void scale_nearest(const Picture& picture, PictureSize scaled, std::int64_t left, std::int64_t top,
                   PictureSize part, Picture& out) {
  const auto channels = static_cast<std::size_t>(picture.channels);
  out.become(part, picture.channels);
  std::uint8_t* to = out.pixels.data();
  for (std::int64_t y = 0; y < part.height; ++y) {
    const std::int64_t row = (2 * (top + y) + 1) * picture.size.height / (2 * scaled.height);
    const std::uint8_t* const from =
        picture.pixels.data() + static_cast<std::size_t>(row) * picture.row_bytes();
    for (std::int64_t x = 0; x < part.width; ++x, to += channels) {
      const std::int64_t column = (2 * (left + x) + 1) * picture.size.width / (2 * scaled.width);
      std::memcpy(to, from + static_cast<std::size_t>(column) * channels, channels);
    }
  }
}

}  // namespace treadle::images
