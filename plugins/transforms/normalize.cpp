#include "normalize.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

namespace treadle::transforms {
namespace {

/// Lines that are known but for the number for white.
class KnownLines final : public LineFit {
 public:
  KnownLines(double white, std::vector<double> means, std::vector<double> deviations)
      : white_(white), means_(std::move(means)), deviations_(std::move(deviations)) {}

  void add(const at::Tensor& values) override {
    if (white_ > 0 || values.numel() == 0)
      return;
    const auto lowest = values.min().item<double>();
    if (lowest < 0) {
      throw DataError("normalize: images have levels from 0 to 1 or from 0 to 255, and here is " +
                      nlohmann::json(lowest).dump() +
                      "; put normalize in front of other scalers, or set \"max_value\"");
    }
    highest_ = std::max(highest_, values.max().item<double>());
  }
  void join(const LineFit& more) override {
    highest_ = std::max(highest_, dynamic_cast<const KnownLines&>(more).highest_);
  }
  std::optional<Line> line(std::size_t column) const override {
    const double white = white_ > 0 ? white_ : highest_ > 1 ? 255 : 1;
    const auto of_column = [column](const std::vector<double>& numbers) {
      return numbers[numbers.size() == 1 ? 0 : column];
    };
    return Line{of_column(means_) * white, 1 / (of_column(deviations_) * white)};
  }

 private:
  double white_;
  std::vector<double> means_;
  std::vector<double> deviations_;
  double highest_ = 0;
};

std::vector<double> numbers_of(const Config& config, const char* key) {
  if (config.has(key) && config.json()[key].is_array())
    return config.get<std::vector<double>>(key);
  return {config.get_or(key, 0.5)};
}

}  // namespace

Normalize::Normalize(const Config& config)
    : LinearScaler(config, "normalize"),
      white_(config.get_or("max_value", 0.0)),
      means_(numbers_of(config, "mean")),
      deviations_(numbers_of(config, "std")) {
  if (!config.has("statistics"))
    return;
  if (config.has("mean") || config.has("std"))
    config.fail("statistics", "has a mean and a std; leave out \"mean\" and \"std\"");
  // Of the images of ImageNet, as torchvision's weights expect them.
  means_ = {0.485, 0.456, 0.406};
  deviations_ = {0.229, 0.224, 0.225};
}

Normalize::~Normalize() = default;

bool Normalize::takes_whole(const PortSpec& port) const {
  const bool varies = std::find(port.shape.begin(), port.shape.end(), kVaries) != port.shape.end();
  return port.columns.empty() && !varies && (port.shape.size() == 2 || port.shape.size() == 3);
}

std::unique_ptr<LineFit> Normalize::start_fit(std::size_t columns) const {
  for (const std::vector<double>* const numbers : {&means_, &deviations_}) {
    if (numbers->size() != 1 && numbers->size() != columns) {
      throw DataError("normalize: \"mean\" and \"std\" have " + std::to_string(numbers->size()) +
                      " numbers for images of " + std::to_string(columns) +
                      " channels; give one number, or one for each channel");
    }
  }
  return std::make_unique<KnownLines>(white_, means_, deviations_);
}

}  // namespace treadle::transforms
