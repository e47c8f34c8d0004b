#include "column_choice.h"

#include <algorithm>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

namespace treadle::transforms {
namespace {

constexpr std::size_t kMostListed = 20;

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMostListed; ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMostListed)
    text += " and " + std::to_string(names.size() - kMostListed) + " more";
  return text.empty() ? "none" : text;
}

}  // namespace

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
                      "; the columns are " + list_of(present) + did_you_mean(name, present));
    }
  }
  return chosen;
}

}  // namespace treadle::transforms
