#include "verify/evidence.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include <treadle/base/error.h>

namespace treadle::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

Evidence run() {
  Evidence evidence;
  evidence.document = {{"treadle", 1}};
  evidence.environment = {
      {"libtorch", "1.13.0"},
      {"plugins", Json::array({{{"id", "org.a"}, {"version", "1"}, {"build_id", "f0"}}})}};
  evidence.files = {{"model.safetensors", "00"}};
  evidence.history = {"epoch,loss", "1,0.5"};
  evidence.result = {{"metrics", {{"accuracy", 0.9}}}};
  return evidence;
}

class Bundles : public testing::Test {
 protected:
  Bundles() {
    std::string pattern = (fs::temp_directory_path() / "treadle-evidence-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~Bundles() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  Evidence read(const std::string& text) const {
    std::ofstream(folder_ / "run.json") << text;
    return evidence_of(folder_ / "run.json");
  }

 private:
  fs::path folder_;
};

TEST_F(Bundles, AreReadAsTheyWereWritten) {
  EXPECT_EQ(bundle_of(read(bundle_of(run()).dump())), bundle_of(run()));
}

TEST_F(Bundles, ThatAreNestedTooDeeplyAreRefused) {
  Json bundle = bundle_of(run());
  bundle["result"] = "HERE";
  std::string text = bundle.dump();
  text.replace(text.find("\"HERE\""), 6, std::string(100'000, '[') + std::string(100'000, ']'));

  EXPECT_THROW(read(text), StorageError);
}

TEST(Differences, NameTheFirstOfEachKind) {
  Evidence here = run();
  here.history[1] = "1,0.4";
  here.files.clear();
  here.result["metrics"]["accuracy"] = 0.8;

  EXPECT_THAT(
      differences(run(), here),
      ElementsAre("history.csv, line 2: is 1,0.4, was 1,0.5", "model.safetensors is not there",
                  "result.json: /metrics/accuracy is 0.8, was 0.9"));
  EXPECT_THAT(differences(run(), run()), ElementsAre());
}

TEST(Differences, DoNothingToATerminal) {
  const char* const title = "\x1b]0;a\x07";
  Evidence before = run();
  before.history[1] = title;
  before.files = {{title, ""}};
  before.result = {{title, title}};
  before.environment = {{title, title}, {"plugins", Json::array({{{"id", title}}})}};

  std::vector<std::string> lines = differences(before, run());
  for (const std::string& line : different_conditions(before.environment, run().environment))
    lines.push_back(line);

  EXPECT_EQ(lines.size(), 5U);
  for (const std::string& line : lines) {
    EXPECT_THAT(line, HasSubstr("\\u001b]0;a\\u0007"));
    EXPECT_EQ(line.find('\x1b'), std::string::npos);
  }
}

TEST(DifferentConditions, MayBeOfAnyKind) {
  Json before = run().environment;
  before["libtorch"] = {1, 13};
  before["plugins"][0]["version"] = 1;
  before["plugins"].push_back("org.b");

  EXPECT_THAT(different_conditions(before, run().environment),
              ElementsAre("libtorch is 1.13.0 here, was [1,13]"));
}

}  // namespace
}  // namespace treadle::cli
