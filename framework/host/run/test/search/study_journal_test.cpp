#include "search/journal/study_journal.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>

#include <treadle/base/error.h>

namespace treadle::internal {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// Lines of a journal with a trial that runs, and what a stranger has written behind them.
class StudyJournalTest : public ::testing::Test {
 protected:
  StudyJournalTest() {
    std::string pattern = (fs::temp_directory_path() / "treadle-journal-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ / "search.journal";
    StudyJournal journal = opened();
    journal.started(0, space_.from_unit(std::vector<double>(3, 1)));
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    good_ = text.str();
  }
  ~StudyJournalTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  StudyJournal opened() const { return {path_, "study", space_, {false}, {{"seed", 1}}}; }

  std::string refusal(const std::string& line) const {
    std::ofstream(path_) << good_ << line << "\n";
    try {
      opened();
    } catch (const StorageError& error) {
      return error.what();
    }
    return "none";
  }
  static std::string attribute(const std::string& key, const std::string& value) {
    return R"({"op_code":9,"trial_id":0,"system_attr":{")" + key + "\":" + value + "}}";
  }
  static std::string param(const std::string& name, const std::string& value) {
    return R"({"op_code":5,"trial_id":0,"param_name":")" + name + R"(","param_value_internal":)" +
           value + "}";
  }

  const SearchSpace space_{{choice("model", {"linear", "deep"}), integers("layers", 1, 8),
                            uniform("dropout", 0, 0.9, 0.1)}};
  fs::path folder_;
  fs::path path_;
  std::string good_;
};

TEST_F(StudyJournalTest, ReadsWhatItHasWritten) {
  EXPECT_EQ(refusal(attribute("treadle:job", R"({"number":0,"paused":true,"epoch":2,"seconds":1,)"
                                             R"("elapsed":1})")),
            "none");
  const StudyJournal journal = opened();

  ASSERT_EQ(journal.points().size(), 1U);
  EXPECT_EQ(space_.to_json(journal.points()[0]),
            (nlohmann::json{{"model", "deep"}, {"layers", 8}, {"dropout", 0.9}}));
  const std::optional<JobResult> end = journal.find_end(0, /*earlier=*/0, /*inherited=*/{});
  ASSERT_TRUE(end);
  EXPECT_EQ(end->state, TrialState::kPaused);
  EXPECT_EQ(end->epoch, 2);
  EXPECT_FALSE(journal.find_end(0, 1, {}));
}

TEST_F(StudyJournalTest, RefusesValuesThatAreNoneOfTheSpace) {
  EXPECT_THAT(refusal(param("model", "2")), HasSubstr("\"model\" that is not in the space"));
  EXPECT_THAT(refusal(param("model", "1e300")), HasSubstr("not in the space"));
  EXPECT_THAT(refusal(param("layers", "-1e300")), HasSubstr("not in the space"));
  EXPECT_THAT(refusal(param("layers", "1.5")), HasSubstr("not in the space"));
  EXPECT_THAT(refusal(param("\\u001b[2J", "1")), HasSubstr("\"\\u001b[2J\", which is not in"));
  // As other programs add up steps.
  EXPECT_EQ(refusal(param("dropout", "0.30000000000000004")), "none");
}

TEST_F(StudyJournalTest, RefusesNumbersThatNoSearchCounts) {
  EXPECT_THAT(refusal(attribute("treadle:job", R"({"number":9223372036854775807,"paused":true,)"
                                               R"("epoch":1,"seconds":1,"elapsed":1})")),
              HasSubstr("has the number 9223372036854775807"));
  EXPECT_THAT(refusal(attribute("treadle:non_finite", R"({"step":-1,"value":"nan"})")),
              HasSubstr("has the number -1"));
  EXPECT_THAT(refusal(R"({"op_code":7,"trial_id":-1,"step":1,"intermediate_value":1})"),
              HasSubstr("is of trial -1, which no line before it has begun"));
}

TEST_F(StudyJournalTest, ALastTrialThatLacksValuesIsTakenBackWithNothingElse) {
  const std::string begun = R"({"op_code":4,"study_id":0})";
  const std::string value =
      R"({"op_code":5,"trial_id":1,"param_name":"model","param_value_internal":0})";
  const std::string other = R"({"op_code":7,"trial_id":0,"step":3,"intermediate_value":1})";

  EXPECT_EQ(refusal(begun), "none");
  EXPECT_EQ(refusal(begun + "\n" + value), "none");
  EXPECT_EQ(opened().points().size(), 1U);
  EXPECT_THAT(refusal(begun + "\n" + value + "\n" + other),
              HasSubstr("has a trial without all of its values"));
  EXPECT_THAT(refusal(begun + "\n" + begun), HasSubstr("has a trial without all of its values"));
}

TEST_F(StudyJournalTest, AnotherSearchIsNamedBeforeItsTrialsAre) {
  good_.replace(good_.find("\"seed\":1"), 8, "\"seed\":2");

  EXPECT_THAT(refusal(param("model", "7")), HasSubstr("is the journal of another search"));
}

TEST_F(StudyJournalTest, RefusesEpochsThatDoNotAscend) {
  const std::string value = R"({"op_code":7,"trial_id":0,"step":3,"intermediate_value":1})";

  EXPECT_EQ(refusal(value), "none");
  EXPECT_THAT(refusal(value + "\n" + value), HasSubstr("is of epoch 3, and a line before it"));
}

TEST_F(StudyJournalTest, RefusesValuesOfOtherObjectives) {
  EXPECT_EQ(refusal(R"({"op_code":6,"trial_id":0,"state":3,"values":null})"), "none");
  EXPECT_THAT(refusal(R"({"op_code":6,"trial_id":0,"state":1,"values":[1,2]})"),
              HasSubstr("has 2 values, and the search has 1 objectives"));
  EXPECT_THAT(refusal(R"({"op_code":6,"trial_id":0,"state":1,"values":null})"),
              HasSubstr("has 0 values"));
}

TEST_F(StudyJournalTest, RefusesAnEndThatThereIsNot) {
  const auto ended = [](const std::string& how) {
    return R"({"op_code":3,"study_id":0,"system_attr":{"treadle:ended":)" + how + "}}";
  };
  EXPECT_EQ(refusal(ended(R"({"reason":"time","text":"t","jobs":1})")), "none");
  EXPECT_THAT(refusal(ended(R"({"jobs":-1})")), HasSubstr("in an unknown way"));
  EXPECT_THAT(refusal(ended(std::string(1000, '['))), HasSubstr("is no line of a journal"));
}

}  // namespace
}  // namespace treadle::internal
