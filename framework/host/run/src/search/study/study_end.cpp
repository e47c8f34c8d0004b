#include "search/study/study_end.h"

#include <string>

namespace treadle::internal {

nlohmann::json ended_by(EndReason reason, const SearchSettings& settings) {
  switch (reason) {
    case EndReason::kTrials:
      return {{"reason", "trials"}, {"text", "all trials were made"}};
    case EndReason::kPatience:
      return {{"reason", "patience"},
              {"text", "no new best in " + std::to_string(*settings.patience) +
                           (*settings.patience == 1 ? " trial" : " trials")}};
    case EndReason::kSpace:
      return {{"reason", "space"}, {"text", "the tuner had no more points"}};
    case EndReason::kPruner:
      return {{"reason", "pruner"},
              {"text", settings.pruner_name + " had no more trials to begin"}};
  }
  return nullptr;
}

nlohmann::json ended_by_time(std::size_t jobs, double left, std::optional<std::int64_t> best) {
  nlohmann::json ended{{"reason", "time"},
                       {"text", "the time budget was used up after " + std::to_string(jobs) +
                                    (jobs == 1 ? " job" : " jobs")},
                       {"jobs", jobs},
                       {"seconds_left", left}};
  if (best)
    ended["best_trial"] = *best;
  return ended;
}

bool is_early_end(const nlohmann::json& ended) {
  if (ended.is_null())
    return true;
  const auto has = [&](const char* key, bool (*fits)(const nlohmann::json&), bool or_lacks) {
    return ended.contains(key) ? fits(ended.at(key)) : or_lacks;
  };
  const auto is_text = [](const nlohmann::json& value) { return value.is_string(); };
  const auto is_number = [](const nlohmann::json& value) { return value.is_number(); };
  const auto is_count = [](const nlohmann::json& value) {
    return value.is_number_integer() && value >= 0;
  };
  return ended.is_object() && has("reason", is_text, false) && has("text", is_text, false) &&
         has("jobs", is_count, false) && has("seconds_left", is_number, true) &&
         has("best_trial", is_count, true);
}

}  // namespace treadle::internal
