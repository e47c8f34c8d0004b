#include "search/journal/study_journal.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <utility>

#include <unistd.h>

#include <treadle/base/error.h>
#include <treadle/base/json_text.h>
#include <treadle/base/json_words.h>

#include "search/study/study_end.h"

namespace treadle::internal {
namespace {

// Codes of Optuna's JournalOperation and TrialState, and of StudyDirection.
constexpr int kCreateStudy = 0;
constexpr int kSetStudyAttribute = 3;
constexpr int kCreateTrial = 4;
constexpr int kSetParam = 5;
constexpr int kSetState = 6;
constexpr int kSetIntermediate = 7;
constexpr int kSetTrialAttribute = 9;

constexpr int kMinimize = 1;
constexpr int kMaximize = 2;

constexpr std::pair<TrialState, int> kStates[] = {{TrialState::kRunning, 0},
                                                  {TrialState::kComplete, 1},
                                                  {TrialState::kPruned, 2},
                                                  {TrialState::kFailed, 3}};

constexpr const char* kIdentity = "treadle:search";
constexpr const char* kEnded = "treadle:ended";
constexpr const char* kElapsed = "treadle:elapsed";
constexpr const char* kLastTraining = "treadle:last_training";
constexpr const char* kLastTrainingFailed = "treadle:last_training_failed";
constexpr const char* kJob = "treadle:job";
constexpr const char* kError = "treadle:error";
constexpr const char* kNonFinite = "treadle:non_finite";  // JSON has no NaN
constexpr const char* kConstraints = "constraints";       // Optuna's own

/// Optuna takes numbers and text as choices: others are their JSON.
nlohmann::json as_choice(const nlohmann::json& choice) {
  return choice.is_structured() ? nlohmann::json(choice.dump()) : choice;
}

std::string distribution_of(const Dimension& dimension) {
  const auto named = [](const char* name, nlohmann::json attributes) {
    return nlohmann::json{{"name", name}, {"attributes", std::move(attributes)}}.dump();
  };
  if (dimension.kind == Dimension::Kind::kChoice) {
    nlohmann::json choices = nlohmann::json::array();
    for (const nlohmann::json& choice : dimension.choices)
      choices.push_back(as_choice(choice));
    return named("CategoricalDistribution", {{"choices", std::move(choices)}});
  }
  nlohmann::json attributes{{"log", dimension.log}};
  if (dimension.kind == Dimension::Kind::kInteger) {
    attributes["low"] = static_cast<std::int64_t>(dimension.low);
    attributes["high"] = static_cast<std::int64_t>(dimension.high);
    attributes["step"] = std::max<std::int64_t>(static_cast<std::int64_t>(dimension.step), 1);
    return named("IntDistribution", std::move(attributes));
  }
  attributes["low"] = dimension.low;
  attributes["high"] = dimension.high;
  attributes["step"] = dimension.step > 0 ? nlohmann::json(dimension.step) : nlohmann::json();
  return named("FloatDistribution", std::move(attributes));
}

std::string time_now() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count() %
      1000000;
  std::tm local{};
  localtime_r(&seconds, &local);
  char text[32];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &local);
  char fraction[16];
  std::snprintf(fraction, sizeof fraction, ".%06d", static_cast<int>(micros));
  return std::string(text, length) + fraction;
}

std::string non_finite_text(double value) {
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

double non_finite(const std::string& text) {
  return text == "nan" ? NAN : text == "inf" ? INFINITY : -INFINITY;
}

/// Null: it was taken back.
std::optional<LastTraining> last_training_from(const nlohmann::json& written) {
  if (written.is_null())
    return std::nullopt;
  LastTraining last{written.at("trial").get<std::int64_t>()};
  if (written.contains("until"))
    last.until = written.at("until").get<double>();
  return last;
}

[[noreturn]] void refuse(const std::string& place, const std::string& why) {
  throw StorageError(place + ": " + why +
                     "; move the journal away and resume the run: trials that it had are then "
                     "trained again, with the same results");
}

/// The number of an epoch, or of a job. None is larger, and sums of them are no larger than the
/// type.
std::int64_t count_in(const nlohmann::json& value, const std::string& place) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  if (!value.is_number_unsigned() || value > kMost)
    refuse(place, "has the number " + describe_value(value) + " for an epoch or a job");
  return value.get<std::int64_t>();
}

}  // namespace

StudyJournal::StudyJournal(std::filesystem::path path, const std::string& name,
                           const SearchSpace& space, std::vector<bool> maximizes,
                           const nlohmann::json& identity)
    : path_(std::move(path)),
      space_(space),
      maximizes_(std::move(maximizes)),
      worker_("treadle-" + std::to_string(getpid())) {
  read(identity);
  if (!identity_.is_null())
    return;
  nlohmann::json directions = nlohmann::json::array();
  for (const bool is_maximized : maximizes_)
    directions.push_back(is_maximized ? kMaximize : kMinimize);
  if (file_->size() == 0)
    append(kCreateStudy, {{"study_name", name}, {"directions", std::move(directions)}});
  set_attribute(kIdentity, identity);
}

void StudyJournal::read(const nlohmann::json& identity) {
  std::uint64_t whole = 0;
  std::uint64_t before_last_trial = 0;
  bool is_trial_at_end = false;  // nothing but values of the last trial since its beginning
  {
    std::ifstream file(path_, std::ios::binary);
    std::string text;
    for (int line = 1; std::getline(file, text) && !file.eof(); ++line) {
      const nlohmann::json parsed = parse_json(text);
      const std::string place = path_.string() + ":" + std::to_string(line);
      if (!parsed.is_object())
        refuse(place, "is no line of a journal");
      try {
        const nlohmann::json& operation = parsed.at("op_code");
        if (operation == kCreateTrial)
          before_last_trial = whole;
        apply(parsed, place);
        is_trial_at_end =
            operation == kCreateTrial || (is_trial_at_end && operation == kSetParam &&
                                          parsed.at("trial_id") == trials_.size() - 1);
      } catch (const nlohmann::json::exception&) {
        refuse(place, "lacks what a line of its kind has");
      }
      // Before what its trials are, which need not be in this space.
      if (!identity_.is_null() && identity_ != identity) {
        throw StorageError(path_.string() +
                           ": is the journal of another search, with another space, objective, "
                           "tuner or seed; move it away to begin this one");
      }
      whole += text.size() + 1;
    }
  }
  // A crash may have cut off the rest, and some values of the last trial.
  if (is_trial_at_end && !has_all_values(trials_.back())) {
    trials_.pop_back();
    whole = before_last_trial;
  }
  for (const JournaledTrial& trial : trials_) {
    if (!has_all_values(trial))
      refuse(path_.string(), "has a trial without all of its values");
    last_reported_.push_back(last_step(trial.end.intermediate));
  }
  file_.emplace(path_);
  file_->truncate_to(whole);
}

bool StudyJournal::has_all_values(const JournaledTrial& trial) const {
  try {
    space_.from_json(trial.params);
    return true;
  } catch (const StorageError&) {
    return false;
  }
}

JournaledTrial& StudyJournal::trial_in(const nlohmann::json& line, const std::string& place) {
  const nlohmann::json& number = line.at("trial_id");
  if (!number.is_number_unsigned() || number >= trials_.size())
    refuse(place, "is of trial " + describe_value(number) + ", which no line before it has begun");
  return trials_[number.get<std::size_t>()];
}

/// Steps ascend.
void StudyJournal::add_value(JournaledTrial& trial, const nlohmann::json& step, double value,
                             const std::string& place) {
  const std::int64_t epoch = count_in(step, place);
  std::vector<IntermediateValue>& values = trial.end.intermediate;
  if (!values.empty() && epoch <= values.back().step)
    refuse(place, "is of epoch " + std::to_string(epoch) + ", and a line before it of epoch " +
                      std::to_string(values.back().step));
  values.push_back({epoch, sign_of(0) * value});
}

void StudyJournal::apply_attributes(const nlohmann::json& attributes, JournaledTrial& trial,
                                    const std::string& place) {
  for (const auto& [key, value] : attributes.items()) {
    if (key == kJob) {
      trial.jobs.push_back({value.at("paused").get<bool>(), count_in(value.at("epoch"), place),
                            value.at("seconds").get<double>(),
                            count_in(value.at("number"), place)});
      jobs_ = std::max(jobs_, trial.jobs.back().number + 1);
      elapsed_ = std::max(elapsed_, value.at("elapsed").get<double>());
    } else if (key == kError) {
      trial.end.error = value.get<std::string>();
    } else if (key == kConstraints) {
      trial.end.constraints = value.get<std::vector<double>>();
    } else if (key == kNonFinite) {
      add_value(trial, value.at("step"), non_finite(value.at("value").get<std::string>()), place);
    }
  }
}

void StudyJournal::apply(const nlohmann::json& line, const std::string& place) {
  switch (line.at("op_code").get<int>()) {
    case kSetStudyAttribute: {
      const nlohmann::json& attributes = line.at("system_attr");
      identity_ = attributes.value(kIdentity, identity_);
      ended_ = attributes.value(kEnded, ended_);
      if (!is_early_end(ended_))
        refuse(place, "ends the search in an unknown way");
      elapsed_ = std::max(elapsed_, attributes.value(kElapsed, 0.0));
      if (attributes.contains(kLastTraining))
        last_training_ = last_training_from(attributes.at(kLastTraining));
      if (attributes.contains(kLastTrainingFailed))
        failed_last_.push_back(attributes.at(kLastTrainingFailed).get<std::int64_t>());
      return;
    }
    case kCreateTrial:
      trials_.push_back({.params = nlohmann::json::object()});
      return;
    case kSetParam: {
      const auto name = line.at("param_name").get<std::string>();
      const std::optional<std::size_t> dimension = space_.find(name);
      if (!dimension)
        refuse(place, "has a value of " + quote_text(name) + ", which is not in the space");
      const auto value = line.at("param_value_internal").get<double>();
      // Other programs round floats differently: from_json() checks those.
      if (space_[*dimension].kind != Dimension::Kind::kFloat && !space_[*dimension].contains(value))
        refuse(place, "has a value of " + quote_text(name) + " that is not in the space");
      trial_in(line, place).params[name] = space_[*dimension].json(value);
      return;
    }
    case kSetState: {
      JobResult& end = trial_in(line, place).end;
      for (const auto& [state, code] : kStates) {
        if (code == line.at("state").get<int>())
          end.state = state;
      }
      if (line.at("values").is_array())
        end.values = line.at("values").get<std::vector<double>>();
      const bool must_have_values = end.state == TrialState::kComplete || !end.values.empty();
      if (must_have_values && end.values.size() != maximizes_.size())
        refuse(place, "has " + std::to_string(end.values.size()) + " values, and the search has " +
                          std::to_string(maximizes_.size()) + " objectives");
      for (std::size_t i = 0; i < end.values.size(); ++i)
        end.values[i] *= sign_of(i);
      return;
    }
    case kSetIntermediate:
      add_value(trial_in(line, place), line.at("step"), line.at("intermediate_value").get<double>(),
                place);
      return;
    case kSetTrialAttribute:
      apply_attributes(line.at("system_attr"), trial_in(line, place), place);
      return;
    default:  // of Optuna's tools, such as a note
      return;
  }
}

void StudyJournal::reopen() {
  append(kSetStudyAttribute,
         {{"study_id", 0}, {"system_attr", {{kEnded, nullptr}, {kLastTraining, nullptr}}}});
}

void StudyJournal::append(int operation, nlohmann::json fields) {
  fields["op_code"] = operation;
  fields["worker_id"] = worker_;
  file_->append_line(fields.dump());
}

// Optuna expects one attribute in a line.

void StudyJournal::set_attribute(const char* key, nlohmann::json value) {
  append(kSetStudyAttribute, {{"study_id", 0}, {"system_attr", {{key, std::move(value)}}}});
}

void StudyJournal::set_attribute(std::int64_t trial, const char* key, nlohmann::json value) {
  append(kSetTrialAttribute, {{"trial_id", trial}, {"system_attr", {{key, std::move(value)}}}});
}

std::vector<Point> StudyJournal::points() const {
  std::vector<Point> points;
  for (const JournaledTrial& trial : trials_)
    points.push_back(space_.from_json(trial.params));
  return points;
}

std::optional<JobResult> StudyJournal::find_end(
    std::int64_t number, std::size_t earlier,
    const std::vector<IntermediateValue>& inherited) const {
  if (number >= static_cast<std::int64_t>(trials_.size()))
    return std::nullopt;
  const JournaledTrial& trial = trials_[static_cast<std::size_t>(number)];
  if (earlier >= trial.jobs.size())
    return std::nullopt;
  const JournaledTrial::Job& job = trial.jobs[earlier];
  if (!job.is_paused && trial.end.state == TrialState::kRunning)
    return std::nullopt;
  JobResult end = job.is_paused ? JobResult{.state = TrialState::kPaused} : trial.end;
  end.trial = number;
  end.epoch = job.epoch;
  end.seconds = job.seconds;
  end.intermediate = inherited;
  for (const IntermediateValue& value : trial.end.intermediate) {
    if (value.step > last_step(inherited) && (!job.is_paused || value.step <= job.epoch))
      end.intermediate.push_back(value);
  }
  return end;
}

bool StudyJournal::may_cancel(std::int64_t number, std::size_t earlier, std::int64_t job) const {
  const auto index = static_cast<std::size_t>(number);
  if (index >= trials_.size() || earlier >= trials_[index].jobs.size())
    return job >= jobs_;
  return trials_[index].jobs[earlier].number == job && trials_[index].end.error == kCancelled;
}

void StudyJournal::started(std::int64_t trial, const Point& point) {
  if (trial < static_cast<std::int64_t>(last_reported_.size()))
    return;
  last_reported_.push_back(0);
  append(kCreateTrial, {{"study_id", 0}, {"datetime_start", time_now()}});
  for (std::size_t i = 0; i < space_.size(); ++i) {
    if (!point.is_active(i))
      continue;
    append(kSetParam, {{"trial_id", trial},
                       {"param_name", space_[i].name},
                       {"param_value_internal", point[i]},
                       {"distribution", distribution_of(space_[i])}});
  }
}

void StudyJournal::reported(std::int64_t trial, const IntermediateValue& value) {
  std::int64_t& last = last_reported_[static_cast<std::size_t>(trial)];
  if (last >= value.step)
    return;
  last = value.step;
  const double written = sign_of(0) * value.value;
  if (std::isfinite(written)) {
    append(kSetIntermediate,
           {{"trial_id", trial}, {"step", value.step}, {"intermediate_value", written}});
  } else {
    set_attribute(trial, kNonFinite, {{"step", value.step}, {"value", non_finite_text(written)}});
  }
}

void StudyJournal::job_ended(std::int64_t job, const JobResult& result, double elapsed) {
  for (const IntermediateValue& value : result.intermediate)
    reported(result.trial, value);
  // The job is the last: with it the others are there.
  if (!result.error.empty())
    set_attribute(result.trial, kError, result.error);
  if (!result.constraints.empty())
    set_attribute(result.trial, kConstraints, result.constraints);
  set_attribute(result.trial, kJob,
                {{"number", job},
                 {"paused", result.state == TrialState::kPaused},
                 {"epoch", result.epoch},
                 {"seconds", result.seconds},
                 {"elapsed", elapsed}});
  if (result.state == TrialState::kPaused)
    return;
  nlohmann::json values;
  for (std::size_t i = 0; i < result.values.size(); ++i)
    values.push_back(sign_of(i) * result.values[i]);
  const auto code = std::find_if(std::begin(kStates), std::end(kStates),
                                 [&](const auto& state) { return state.first == result.state; });
  append(kSetState, {{"trial_id", result.trial},
                     {"state", code->second},
                     {"values", std::move(values)},
                     {"datetime_complete", time_now()}});
}

void StudyJournal::last_training_began(const LastTraining& last) {
  last_training_ = last;
  nlohmann::json written = {{"trial", last.trial}};
  if (last.until)
    written["until"] = *last.until;
  set_attribute(kLastTraining, std::move(written));
  file_->sync();
}

void StudyJournal::last_training_failed(std::int64_t trial) {
  failed_last_.push_back(trial);
  set_attribute(kLastTrainingFailed, trial);
  file_->sync();
}

void StudyJournal::searched_for(double elapsed) {
  set_attribute(kElapsed, elapsed);
}

void StudyJournal::search_ended(const nlohmann::json& how) {
  if (!ended_.is_null())
    return;
  ended_ = how;
  set_attribute(kEnded, how);
  file_->sync();
}

}  // namespace treadle::internal
