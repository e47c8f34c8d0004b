#include "search/study/job_result.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle::internal {
namespace {

/// No training has so many, and sums of them are still numbers of epochs.
constexpr std::int64_t kMostEpochs = std::int64_t{1} << 40;

constexpr std::pair<TrialState, const char*> kStates[] = {{TrialState::kRunning, "running"},
                                                          {TrialState::kPaused, "paused"},
                                                          {TrialState::kComplete, "complete"},
                                                          {TrialState::kPruned, "pruned"},
                                                          {TrialState::kFailed, "failed"}};

class Reader {
 public:
  Reader(const nlohmann::json& stored, const std::string& place) : stored_(stored), place_(place) {}

  [[noreturn]] void refuse(const std::string& what) const {
    throw StorageError(place_ + " has a result that no worker writes: " + what +
                       "; another version of Treadle, or another program, has written to the "
                       "storage");
  }

  std::int64_t integer(const char* key) const { return integer_in(stored_.at(key), key); }
  std::int64_t integer_in(const nlohmann::json& value, const char* key) const {
    if (!value.is_number_integer() || value < 0 || value > kMostEpochs)
      refuse(std::string(key) + " is " + describe_value(value));
    return value.get<std::int64_t>();
  }
  std::vector<double> numbers(const char* key) const {
    const nlohmann::json& values = stored_.at(key);
    for (const nlohmann::json& value : values) {
      if (!value.is_number())
        refuse("in " + std::string(key) + " is " + describe_value(value));
    }
    return values.get<std::vector<double>>();
  }

  /// A value that is no number is null in JSON.
  std::vector<IntermediateValue> intermediate(const char* key) const {
    std::vector<IntermediateValue> values;
    for (const nlohmann::json& pair : stored_.at(key)) {
      const std::int64_t step = integer_in(pair.at(0), "an epoch");
      if (!values.empty() && step <= values.back().step)
        refuse("epoch " + std::to_string(step) + " comes after " +
               std::to_string(values.back().step));
      values.push_back({step, pair.at(1).is_number() ? pair.at(1).get<double>() : NAN});
    }
    return values;
  }

 private:
  const nlohmann::json& stored_;
  const std::string& place_;
};

}  // namespace

nlohmann::json to_json(const JobResult& result) {
  nlohmann::json intermediate = nlohmann::json::array();
  for (const IntermediateValue& value : result.intermediate)
    intermediate.push_back({value.step, value.value});
  return {{"trial", result.trial},
          {"state", state_text(result.state)},
          {"epoch", result.epoch},
          {"values", result.values},
          {"constraints", result.constraints},
          {"intermediate", std::move(intermediate)},
          {"error", result.error},
          {"cancelled", result.error == kCancelled},
          {"seconds", result.seconds}};
}

JobResult read_job_result(const nlohmann::json& stored, const ExpectedResult& expected) {
  const Reader reader(stored, expected.place);
  try {
    const auto text = stored.at("state").get<std::string>();
    const std::optional<TrialState> state = state_named(text);
    if (!state) {
      throw StorageError(expected.place + " has the state " + quote_text(text) +
                         ", which this version does not know");
    }
    JobResult result{.trial = reader.integer("trial"),
                     .state = *state,
                     .epoch = reader.integer("epoch"),
                     .values = reader.numbers("values"),
                     .constraints = reader.numbers("constraints"),
                     .intermediate = reader.intermediate("intermediate"),
                     .error = stored.at("error").get<std::string>(),
                     .seconds = stored.at("seconds").get<double>()};
    if (stored.at("cancelled").get<bool>())
      result.error = kCancelled;
    if (result.trial != expected.trial) {
      reader.refuse("it is of trial " + std::to_string(result.trial) + ", not of trial " +
                    std::to_string(expected.trial));
    }
    // Decisions look at one for each objective.
    const bool is_complete = result.state == TrialState::kComplete;
    if (result.values.size() != (is_complete ? expected.values : 0) ||
        result.constraints.size() != (is_complete ? expected.constraints : 0)) {
      reader.refuse("it has " + std::to_string(result.values.size()) + " values and " +
                    std::to_string(result.constraints.size()) + " constraints");
    }
    if (result.state == TrialState::kPaused && result.intermediate.empty())
      reader.refuse("its trial is paused and has no value");
    if (!(result.seconds >= 0))
      reader.refuse("it took " + stored.at("seconds").dump() + " s");
    return result;
  } catch (const nlohmann::json::exception&) {
    reader.refuse("a part of it is missing, or of another kind");
  }
}

const char* state_text(TrialState state) {
  return std::find_if(std::begin(kStates), std::end(kStates),
                      [&](const auto& named) { return named.first == state; })
      ->second;
}

std::optional<TrialState> state_named(std::string_view text) {
  for (const auto& [state, name] : kStates) {
    if (name == text && state != TrialState::kRunning)
      return state;
  }
  return std::nullopt;
}

}  // namespace treadle::internal
