#include "image_choice.h"

#include <algorithm>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

namespace treadle::augmentation {
namespace {

constexpr const char* kImage =
    "an image has the shape [height, width] or [channels, height, width]";

std::optional<ImageShape> image_shape(const PortSpec& port) {
  const std::vector<std::int64_t>& shape = port.shape;
  const bool is_numbers = (port.role == Role::kFeatures || port.role == Role::kImage) &&
                          (c10::isFloatingType(port.dtype) || port.dtype == at::kByte);
  const bool varies = std::find(shape.begin(), shape.end(), kVaries) != shape.end();
  if (!is_numbers || varies || !port.columns.empty() || (shape.size() != 2 && shape.size() != 3))
    return std::nullopt;
  const std::size_t last = shape.size() - 1;
  return ImageShape{shape.size() == 3 ? shape[0] : 1, shape[last - 1], shape[last]};
}

std::string what_it_is(const PortSpec& port) {
  if (!port.columns.empty())
    return port.is_table() ? "a table" : "windows of a table";
  if (port.role == Role::kTokens)
    return "tokens";
  std::string text = "of the shape [";
  for (std::size_t i = 0; i < port.shape.size(); ++i) {
    text += i == 0 ? "" : ", ";
    text += port.shape[i] == kVaries ? "varies" : std::to_string(port.shape[i]);
  }
  return text + "]";
}

}  // namespace

ImageChoice::ImageChoice(const Config& config, std::string component)
    : component_(std::move(component)), names_(config.find<std::vector<std::string>>("inputs")) {}

std::vector<std::optional<ImageShape>> ImageChoice::choose(const DataSpec& spec) const {
  std::vector<std::optional<ImageShape>> chosen;
  std::vector<std::string> present;
  std::vector<std::string> described;
  for (const PortSpec& port : spec.inputs) {
    const bool named =
        names_ && std::find(names_->begin(), names_->end(), port.name) != names_->end();
    chosen.push_back(named || !names_ ? image_shape(port) : std::nullopt);
    if (named && !chosen.back()) {
      throw DataError(component_ + ": input " + quote_text(port.name) + " is " + what_it_is(port) +
                      "; " + kImage);
    }
    present.push_back(port.name);
    if (!port.is_auxiliary())
      described.push_back(port.name + " (" + what_it_is(port) + ")");
  }
  for (const std::string& name : names_.value_or(std::vector<std::string>())) {
    if (std::find(present.begin(), present.end(), name) == present.end()) {
      throw DataError(component_ + ": there is no input " + quote_text(name) + "; the inputs are " +
                      name_list(present) + did_you_mean(name, present));
    }
  }
  const bool none = std::none_of(chosen.begin(), chosen.end(),
                                 [](const auto& image) { return image.has_value(); });
  if (none) {
    throw DataError(component_ + ": no input is an image; " + kImage + ", and the inputs are " +
                    name_list(described));
  }
  return chosen;
}

void expect_images(at::Tensor& images, const ImageShape& shape) {
  TREADLE_EXPECTS(images.dim() >= 3 && images.numel() == images.size(0) * shape.numel() &&
                      images.size(-1) == shape.width && images.size(-2) == shape.height,
                  "the batch has other images than the data this transform was fitted on");
  TREADLE_EXPECTS(images.scalar_type() == at::kFloat || images.scalar_type() == at::kDouble ||
                      images.scalar_type() == at::kByte,
                  "images are float32, float64 or uint8");
  images = images.contiguous();
}

at::Tensor per_row(const at::Tensor& of_rows, const at::Tensor& images) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(images.dim()), 1);
  shape[0] = of_rows.size(0);
  return of_rows.view(shape).to(images.device(), of_rows.scalar_type(), /*non_blocking=*/true);
}

}  // namespace treadle::augmentation
