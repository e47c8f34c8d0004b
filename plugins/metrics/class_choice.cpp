#include "class_choice.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

namespace treadle::metrics {
namespace {

constexpr std::array<std::pair<std::string_view, ClassChoice::Average>, 3> kAverages{{
    {"macro", ClassChoice::Average::kMacro},
    {"micro", ClassChoice::Average::kMicro},
    {"weighted", ClassChoice::Average::kWeighted},
}};

}  // namespace

ClassChoice::ClassChoice(const Config& config) : config_(config) {
  const auto name = config.find<std::string>("average");
  if (!name)
    return;
  const auto found = std::find_if(kAverages.begin(), kAverages.end(),
                                  [&](const auto& average) { return average.first == *name; });
  if (found == kAverages.end())
    config.fail("average", "must be \"macro\", \"micro\" or \"weighted\"");
  if (config.has("class"))
    config.fail("average", "cannot stand beside \"class\", which has one value; remove either");
  average_ = found->second;
}

void ClassChoice::start(const TargetSpec& target) {
  class_names_ = target.class_names;
  one_.reset();
  if (const auto name = config_.find<std::string>("class")) {
    const auto found = std::find(class_names_.begin(), class_names_.end(), *name);
    if (found == class_names_.end()) {
      config_.fail("class", "is " + quote_text(*name) + ", but the target " +
                                quote_text(target.name) + " has " + quoted_list(class_names_) +
                                did_you_mean(*name, class_names_));
    }
    one_ = std::distance(class_names_.begin(), found);
  } else if (target.kind == TargetKind::kClasses && target.class_count() == 2 &&
             !config_.has("average")) {
    one_ = 1;
  }
}

std::string ClassChoice::value_name(std::string_view metric) const {
  const std::string name(metric);
  return config_.has("class") ? name + "." + class_names_[static_cast<std::size_t>(*one_)] : name;
}

std::string ClassChoice::quoted_class(std::int64_t index) const {
  return quote_text(class_names_[static_cast<std::size_t>(index)]);
}

}  // namespace treadle::metrics
