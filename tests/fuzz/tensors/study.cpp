#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_text.h>
#include <treadle/search/study_storage.h>

#include "search/journal/shared_study.h"
#include "search/study/job_result.h"
#include "targets.h"

namespace treadle::fuzz {
namespace {

using Json = nlohmann::json;
using internal::ExpectedResult;
using internal::JobResult;
using internal::SharedStudy;
using internal::StudyDescription;

constexpr std::size_t kLongestComplaint = 2000;  // what is quoted is cut

/// A storage that somebody else has written to.
class StrangersStorage final : public StudyStorage {
 public:
  StrangersStorage(Json description, Json result, Json ended)
      : description_(std::move(description)),
        result_(std::move(result)),
        ended_(std::move(ended)) {}

 private:
  std::vector<std::string> do_studies() override { return {"study"}; }
  Json do_create(const std::string&, const Json&) override { return description_; }
  std::optional<Json> do_description(const std::string&) override { return description_; }
  bool do_claim(const std::string&, std::int64_t, const std::string&, double) override {
    return false;
  }
  bool do_renew(const std::string&, std::int64_t, const std::string&, double) override {
    return false;
  }
  void do_release(const std::string&, std::int64_t, const std::string&) override {}
  bool do_finish(const std::string&, std::int64_t, const std::string&, const Json&) override {
    return false;
  }
  std::vector<StoredResult> do_results(const std::string&, std::int64_t after) override {
    return after > 0 ? std::vector<StoredResult>()
                     : std::vector<StoredResult>{{1, 0, "a", result_}};
  }
  Json do_end(const std::string&, const Json&) override { return ended_; }
  Json do_ended(const std::string&) override { return ended_; }

  const Json description_;
  const Json result_;
  const Json ended_;
};

/// False where it is refused.
template <typename Read>
bool is_read(Read&& read) {
  try {
    std::forward<Read>(read)();
    return true;
  } catch (const StorageError& error) {
    promise_readable(error.what(), kLongestComplaint);
    return false;
  }
}

void read_description(SharedStudy& study, const Json& stored) {
  StudyDescription described;
  if (!is_read([&] { described = internal::read_study_description(stored, "study"); }))
    return;
  promise(described.document.is_object() && described.document.at("search").is_object() &&
              described.environment.is_object(),
          "who joins finds a document that searches, and its conditions");
  promise(is_read([&] { study.open(described); }), "a study is its own");
  const Json written = to_json(described);
  promise(to_json(internal::read_study_description(written, "study")) == written,
          "a description written again is the same");
}

void read_result(SharedStudy& study) {
  study.fetch();
  const Json* const stored = study.result(0);
  if (stored == nullptr)
    return;
  const ExpectedResult expected{
      .place = "job 0 of the study study", .trial = 0, .values = 2, .constraints = 1};
  JobResult result;
  if (!is_read([&] { result = read_job_result(*stored, expected); }))
    return;
  const bool is_complete = result.state == TrialState::kComplete;
  promise(result.values.size() == (is_complete ? 2 : 0) &&
              result.constraints.size() == (is_complete ? 1 : 0),
          "a result has what decisions look at");
  promise(result.state != TrialState::kPaused || !result.intermediate.empty(),
          "a paused trial has a value");
  promise(result.seconds >= 0 && result.epoch >= 0, "nothing is less than nothing");
  std::int64_t last = -1;
  for (const IntermediateValue& value : result.intermediate) {
    promise(value.step > last, "epochs ascend");
    last = value.step;
  }
  const std::string written = to_json(result).dump();  // NaN is null there
  promise(to_json(read_job_result(Json::parse(written), expected)).dump() == written,
          "a result written again is the same");
}

void read_end(SharedStudy& study) {
  Json ended;
  if (!is_read([&] { ended = study.ended(); }))
    return;
  promise(ended.is_null() || ended.at("jobs").is_number_unsigned(), "an end says after which job");
  promise(is_read([&] { study.end(ended); }), "an end that is there may be made again");
}

}  // namespace

void study(std::string_view bytes) {
  std::string_view rest = bytes;
  const Json description = parse_json(take_part(rest));
  const Json result = parse_json(take_part(rest));
  const Json ended = parse_json(rest);
  // As storages have read them: those refuse what is no JSON, and a result is not null.
  if (description.is_discarded())
    return;
  SharedStudy shared(
      std::make_shared<StrangersStorage>(description, result.is_discarded() ? Json(0) : result,
                                         ended.is_discarded() ? Json() : ended),
      "study", 60);
  read_description(shared, description);
  read_result(shared);
  read_end(shared);
}

}  // namespace treadle::fuzz
