#include <treadle/host/record/search_result.h>

#include <algorithm>

#include "search_fields.h"

namespace treadle {

const SearchResult::Trial* SearchResult::find(std::int64_t number) const {
  const auto found = std::find_if(trials.begin(), trials.end(),
                                  [&](const Trial& trial) { return trial.number == number; });
  return found == trials.end() ? nullptr : &*found;
}

nlohmann::json to_json(const SearchResult& result) {
  return fields::written(result);
}

nlohmann::json to_json(const EnsembleResult& result) {
  return fields::written(result);
}

EnsembleResult ensemble_result_from(const nlohmann::json& stored, const std::string& place) {
  return fields::read<EnsembleResult>(stored, place);
}

}  // namespace treadle
