#include <treadle/search/study_storage.h>

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

namespace treadle {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

/// Says what it is told to.
class ToldStorage final : public StudyStorage {
 public:
  std::vector<std::string> names;
  std::vector<StoredResult> found;

 private:
  std::vector<std::string> do_studies() override { return names; }
  json do_create(const std::string&, const json& description) override { return description; }
  std::optional<json> do_description(const std::string&) override { return std::nullopt; }
  bool do_claim(const std::string&, std::int64_t, const std::string&, double) override {
    return true;
  }
  bool do_renew(const std::string&, std::int64_t, const std::string&, double) override {
    return true;
  }
  void do_release(const std::string&, std::int64_t, const std::string&) override {}
  bool do_finish(const std::string&, std::int64_t, const std::string&, const json&) override {
    return true;
  }
  std::vector<StoredResult> do_results(const std::string&, std::int64_t) override { return found; }
  json do_end(const std::string&, const json& how) override { return how; }
  json do_ended(const std::string&) override { return nullptr; }
};

TEST(StudyStorage, StudiesAreSorted) {
  ToldStorage storage;
  storage.names = {"b", "c", "a"};

  EXPECT_EQ(storage.studies(), (std::vector<std::string>{"a", "b", "c"}));
}

TEST(StudyStorage, StudiesThatNobodyCanNameAreRefused) {
  for (const std::string& bad : {std::string(), std::string("a\0b", 3), std::string("\xff")}) {
    ToldStorage storage;
    storage.names = {"a", bad};
    EXPECT_THROW(storage.studies(), StorageError) << bad;
  }
}

TEST(StudyStorage, ResultsThatAreNotInTheirOrderAreRefused) {
  const auto refused = [](std::vector<std::int64_t> sequence, std::int64_t after) {
    ToldStorage storage;
    for (const std::int64_t number : sequence)
      storage.found.push_back({number, 0, "A", 1});
    try {
      storage.results("study", after);
    } catch (const PluginError& error) {
      EXPECT_THAT(error.what(), HasSubstr("results that are not in their order"));
      return true;
    }
    return false;
  };

  EXPECT_FALSE(refused({1, 2, 5}, 0));
  EXPECT_FALSE(refused({4, 5}, 3));
  EXPECT_TRUE(refused({2, 1}, 0));
  EXPECT_TRUE(refused({1, 1}, 0));
  EXPECT_TRUE(refused({3}, 3)) << "it was asked for what comes behind";
}

TEST(StudyStorage, CallsThatMeanNothingDoNotReachIt) {
  ToldStorage storage;
  const std::string nul("a\0b", 3);
  for (const std::string& name : {std::string(), nul, std::string("\xff")}) {
    EXPECT_THROW(storage.create(name, 1), ContractViolation);
    EXPECT_THROW(storage.description(name), ContractViolation);
    EXPECT_THROW(storage.claim(name, 0, "A", 1), ContractViolation);
    EXPECT_THROW(storage.claim("study", 0, name, 1), ContractViolation);
    EXPECT_THROW(storage.renew("study", 0, name, 1), ContractViolation);
    EXPECT_THROW(storage.release("study", 0, name), ContractViolation);
    EXPECT_THROW(storage.finish("study", 0, name, 1), ContractViolation);
    EXPECT_THROW(storage.results(name, 0), ContractViolation);
    EXPECT_THROW(storage.end(name, 1), ContractViolation);
    EXPECT_THROW(storage.ended(name), ContractViolation);
  }
  for (const double seconds : {0.0, -1.0, HUGE_VAL, std::nan("")}) {
    EXPECT_THROW(storage.claim("study", 0, "A", seconds), ContractViolation);
    EXPECT_THROW(storage.renew("study", 0, "A", seconds), ContractViolation);
  }
  EXPECT_THROW(storage.claim("study", -1, "A", 1), ContractViolation);
  EXPECT_THROW(storage.finish("study", 0, "A", nullptr), ContractViolation);
}

}  // namespace
}  // namespace treadle
