#include "estimates.h"

#include <algorithm>
#include <array>

#include <treadle/base/error.h>

namespace treadle::forecasting {
namespace {

struct NamedEstimate {
  Estimate estimate;
  const char* name;
};
constexpr std::array kEstimates = {NamedEstimate{Estimate::kLocation, "location"},
                                   NamedEstimate{Estimate::kScale, "scale"},
                                   NamedEstimate{Estimate::kDimensionless, "dimensionless"},
                                   NamedEstimate{Estimate::kCount, "count"}};

}  // namespace

std::string name_of(Estimate estimate) {
  const auto* const found =
      std::find_if(kEstimates.begin(), kEstimates.end(),
                   [&](const NamedEstimate& one) { return one.estimate == estimate; });
  TREADLE_EXPECTS(found != kEstimates.end(), "all estimates have names");
  return found->name;
}

std::vector<std::string> names_of(const std::vector<Estimate>& estimates) {
  std::vector<std::string> names;
  for (const Estimate estimate : estimates)
    names.push_back(name_of(estimate));
  return names;
}

std::vector<Estimate> estimates_in(const Config& config) {
  std::vector<Estimate> estimates;
  for (const std::string& name : config.get<std::vector<std::string>>("estimates")) {
    const auto* const found =
        std::find_if(kEstimates.begin(), kEstimates.end(),
                     [&](const NamedEstimate& one) { return one.name == name; });
    TREADLE_EXPECTS(found != kEstimates.end(), "the schema lists the estimates");
    estimates.push_back(found->estimate);
  }
  return estimates;
}

}  // namespace treadle::forecasting
