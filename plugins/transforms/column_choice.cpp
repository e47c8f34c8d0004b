#include "column_choice.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

namespace treadle::transforms {

bool is_numbers(const PortSpec& port) {
  return (port.role == Role::kFeatures || port.role == Role::kImage) &&
         c10::isFloatingType(port.dtype) && !port.shape.empty();
}

std::string described_inputs(const DataSpec& spec) {
  const auto role = [](const PortSpec& port) -> const char* {
    switch (port.role) {
      case Role::kFeatures:
        return "numbers";
      case Role::kCategories:
        return "categories";
      case Role::kTokens:
        return "tokens";
      case Role::kImage:
        return port.dtype == c10::ScalarType::Byte ? "an image of bytes" : "an image";
      case Role::kLengths:
        return "lengths";
      case Role::kMask:
        return "a mask";
      case Role::kSegments:
        break;
    }
    return "segments";
  };
  std::string text;
  for (const PortSpec& port : spec.inputs) {
    if (!port.is_auxiliary())
      text += (text.empty() ? "" : ", ") + quote_text(port.name) + " (" + role(port) + ")";
  }
  return text;
}

std::string features_beside(const std::string& categories) {
  constexpr std::string_view kSuffix = ".categories";
  return categories.size() > kSuffix.size() && categories.ends_with(kSuffix)
             ? categories.substr(0, categories.size() - kSuffix.size())
             : "features";
}

c10::ScalarType number_dtype(const DataSpec& spec) {
  const auto found = std::find_if(spec.inputs.begin(), spec.inputs.end(), is_numbers);
  return found == spec.inputs.end() ? c10::ScalarType::Float : found->dtype;
}

bool any_chosen(const std::vector<std::vector<bool>>& chosen) {
  return std::any_of(chosen.begin(), chosen.end(), [](const std::vector<bool>& of_port) {
    return std::find(of_port.begin(), of_port.end(), true) != of_port.end();
  });
}

ColumnChoice::ColumnChoice(const Config& config, std::string component)
    : component_(std::move(component)), names_(config.find<std::vector<std::string>>("columns")) {}

std::vector<std::vector<bool>> ColumnChoice::choose(const DataSpec& spec,
                                                    const std::function<bool(const Column&)>& suits,
                                                    const std::string& requirement) const {
  std::vector<std::vector<bool>> chosen;
  std::vector<std::string> present;
  for (const PortSpec& port : spec.inputs) {
    std::vector<bool>& of_port = chosen.emplace_back();
    for (const Column& column : port.columns) {
      present.push_back(column.name);
      const bool named =
          names_ && std::find(names_->begin(), names_->end(), column.name) != names_->end();
      if (named && !suits(column)) {
        throw DataError(component_ + ": column " + quote_text(column.name) + " " + requirement);
      }
      of_port.push_back(names_ ? named : suits(column));
    }
  }
  for (const std::string& name : names_.value_or(std::vector<std::string>())) {
    if (std::find(present.begin(), present.end(), name) == present.end()) {
      throw DataError(component_ + ": there is no column " + quote_text(name) +
                      "; the columns are " + name_list(present) + did_you_mean(name, present));
    }
  }
  return chosen;
}

}  // namespace treadle::transforms
