#include <treadle/host/explain/row_pictures.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/nan_to_num.h>

#include <treadle/base/error.h>

namespace treadle::explain {
namespace {

constexpr std::int64_t kMostPixels = 64;
constexpr std::int64_t kMostLines = 8;
constexpr std::int64_t kMostSteps = 200;
constexpr int kWidth = 160;
constexpr int kHeight = 60;

void put_number(std::string& bytes, std::uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes += static_cast<char>((number >> shift) & 0xFFU);
}

/// The CRC-32 of PNG (ISO 3309).
std::uint32_t crc_of(const std::string& bytes) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

void put_chunk(std::string& file, const std::string& kind, const std::string& content) {
  put_number(file, static_cast<std::uint32_t>(content.size()));
  file += kind + content;
  put_number(file, crc_of(kind + content));
}

/// zlib's format with stored blocks (RFC 1950, RFC 1951).
std::string stored(const std::string& bytes) {
  constexpr std::size_t kMostOfBlock = 65535;
  std::string result("\x78\x01", 2);
  for (std::size_t begin = 0; begin < bytes.size(); begin += kMostOfBlock) {
    const std::size_t size = std::min(kMostOfBlock, bytes.size() - begin);
    result += begin + size == bytes.size() ? '\x01' : '\x00';
    for (const std::size_t number : {size, ~size}) {
      result += static_cast<char>(number & 0xFFU);
      result += static_cast<char>((number >> 8U) & 0xFFU);
    }
    result.append(bytes, begin, size);
  }
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  for (const char byte : bytes) {
    a = (a + static_cast<unsigned char>(byte)) % 65521;
    b = (b + a) % 65521;
  }
  put_number(result, (b << 16U) | a);
  return result;
}

std::string base64(const std::string& bytes) {
  static constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t three = 0;
    for (std::size_t k = 0; k < 3; ++k)
      three =
          (three << 8U) | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      text += i + k > bytes.size() ? '=' : kDigits[(three >> (18 - 6 * k)) & 63U];
  }
  return text;
}

/// In 0 … 1 by the least and the greatest finite value.
at::Tensor scaled(const at::Tensor& values) {
  const at::Tensor known = values.masked_select(at::isfinite(values));
  if (known.numel() == 0)
    return at::nan_to_num(values * 0);
  const auto least = known.min().item<double>();
  const double range = known.max().item<double>() - least;
  return at::nan_to_num((values - least) / (range > 0 ? range : 1), least, 1, 0);
}

/// `image`: [channels, height, width].
std::string image_picture(const at::Tensor& image) {
  const std::int64_t height = image.size(1);
  const std::int64_t width = image.size(2);
  const std::int64_t stride =
      std::max<std::int64_t>((std::max(height, width) + kMostPixels - 1) / kMostPixels, 1);
  at::Tensor pixels = image.slice(1, 0, height, stride).slice(2, 0, width, stride);
  pixels = pixels.size(0) == 3 ? pixels : pixels.narrow(0, 0, 1);
  if (pixels.scalar_type() != at::kByte)
    pixels = (scaled(pixels.to(at::kDouble)) * 255).round().clamp(0, 255).to(at::kByte);
  return "data:image/png;base64," + base64(png_of(pixels.permute({1, 2, 0})));
}

/// `window`: [steps, columns].
std::string window_picture(const at::Tensor& window) {
  std::string svg = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 " +
                    std::to_string(kWidth) + " " + std::to_string(kHeight) + "'>";
  const std::int64_t stride = std::max<std::int64_t>(window.size(0) / kMostSteps, 1);
  for (std::int64_t column = 0; column < std::min(window.size(1), kMostLines); ++column) {
    const at::Tensor line = scaled(window.select(1, column).to(at::kDouble))
                                .slice(0, 0, window.size(0), stride)
                                .contiguous();
    const auto* const values = line.data_ptr<double>();
    std::string points;
    for (std::int64_t i = 0; i < line.size(0); ++i) {
      std::array<char, 32> point{};
      std::snprintf(point.data(), point.size(), "%.1f,%.1f ",
                    2 + (kWidth - 4.0) * static_cast<double>(i) /
                            static_cast<double>(std::max<std::int64_t>(line.size(0) - 1, 1)),
                    2 + (kHeight - 4.0) * (1 - values[i]));
      points += point.data();
    }
    svg += "<polyline fill='none' stroke='hsl(" + std::to_string(215 + 47 * column) +
           ",60%,50%)' points='" + points + "'/>";
  }
  return "data:image/svg+xml;base64," + base64(svg + "</svg>");
}

}  // namespace

std::string png_of(const at::Tensor& pixels) {
  TREADLE_EXPECTS(pixels.dim() == 3 && pixels.scalar_type() == at::kByte,
                  "pixels of uint8 [height, width, channels]");
  const at::Tensor flat = pixels.contiguous();
  const auto row = static_cast<std::size_t>(flat.size(1) * flat.size(2));
  std::string lines;
  for (std::int64_t y = 0; y < flat.size(0); ++y) {
    lines += '\0';  // no filter
    const auto* const first = flat.data_ptr<std::uint8_t>() + static_cast<std::size_t>(y) * row;
    lines.append(first, first + row);
  }
  std::string head;
  put_number(head, static_cast<std::uint32_t>(flat.size(1)));
  put_number(head, static_cast<std::uint32_t>(flat.size(0)));
  head += '\x08';
  head += flat.size(2) == 3 ? '\x02' : '\x00';
  head.append(3, '\0');
  std::string file("\x89PNG\r\n\x1a\n", 8);
  put_chunk(file, "IHDR", head);
  put_chunk(file, "IDAT", stored(lines));
  put_chunk(file, "IEND", "");
  return file;
}

std::string picture_of(const DataSpec& spec, const Batch& row) {
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    const at::Tensor& input = row.inputs[i];
    if (spec.inputs[i].role == Role::kImage && input.dim() == 4)
      return image_picture(input[0]);
  }
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    const PortSpec& port = spec.inputs[i];
    const at::Tensor& input = row.inputs[i];
    if (port.role == Role::kFeatures && !port.is_auxiliary() && input.dim() == 3)
      return window_picture(input[0]);
  }
  return {};
}

}  // namespace treadle::explain
