#include "quantile_extras.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle::metrics {

QuantileExtras::QuantileExtras(std::vector<double> levels, std::string_view metric)
    : levels_(std::move(levels)), metric_(metric) {
  for (const double level : levels_)
    names_.push_back("q" + nlohmann::json(level).dump());
}

std::vector<double> QuantileExtras::levels_in(const Config& config) {
  auto levels = config.get<std::vector<double>>("quantiles");
  if (std::adjacent_find(levels.begin(), levels.end(), std::greater_equal<>()) != levels.end())
    config.fail("quantiles", "must ascend, each greater than the one before");
  return levels;
}

const at::Tensor& QuantileExtras::in(const Prediction& prediction, std::size_t quantile) const {
  std::string names;
  for (const Prediction::Extra& extra : prediction.extras) {
    if (extra.name == names_[quantile])
      return extra.values;
    names += (names.empty() ? "" : ", ") + extra.name;
  }
  if (levels_[quantile] == 0.5)
    return prediction.values;
  throw DataError("metric " + quote_text(metric_) + " needs the quantile " + names_[quantile] +
                  ", but the loss predicts " + (names.empty() ? "no quantiles" : names) +
                  "; state it in the \"quantiles\" of the loss, which is \"quantile\" or that of a "
                  "distribution");
}

}  // namespace treadle::metrics
