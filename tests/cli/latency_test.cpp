// `latency`: the model of a machine, and what a search makes of it.
#include <gmock/gmock.h>

#include "command_fixture.h"

namespace treadle {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class Latency : public CommandFixture {
 protected:
  Latency() { given_points(); }
};

TEST_F(Latency, OfKnownLayersIsWrittenAndNamedByASearch) {
  const Finished done = run({"latency", "-o", "machine.json", "--json"});

  ASSERT_EQ(done.code, 0) << done.err;
  const json machine = json::parse(read("machine.json"));
  EXPECT_EQ(done.json(), machine);
  EXPECT_GE(machine.at("measurements").size(), 10U);
  for (const json& pass : machine.at("measurements")) {
    EXPECT_GT(pass.at("seconds"), 0) << pass;
    EXPECT_GT(pass.at("flops"), 0) << pass;
  }
  EXPECT_LE(machine.at("r_squared"), 1);
  given_document(1, {{"search",
                      {{"objective", {"val_loss", "latency"}},
                       {"latency", "machine.json"},
                       {"tuner", "random"},
                       {"trials", 1},
                       {"space", {{"optimizer.learning_rate", {{"uniform", {0.01, 0.1}}}}}}}}});
  const Finished checked = run({"check", "points.json", "--json"});
  ASSERT_EQ(checked.code, 0) << checked.err << checked.out;
  EXPECT_EQ(checked.json().at("resolved").at("search").at("latency"), machine.at("model"));
}

TEST_F(Latency, NeedsThreeDocuments) {
  given_document(1);

  const Finished done = run({"latency", "points.json", "points.json", "-o", "machine.json"});

  EXPECT_EQ(done.code, 5);
  EXPECT_THAT(done.err, HasSubstr("has three unknowns, and there are 2 measurements"));
  EXPECT_FALSE(std::filesystem::exists(folder() / "machine.json"));
}

TEST_F(Latency, OfDocumentsPrintsWhatIsMeasuredBesideWhatIsPredicted) {
  for (const char* const name : {"a", "b", "c", "d"}) {
    const int width = 8 << (3 * (name[0] - 'a') / 2);
    json hidden = json::array({width});
    if (name[0] % 2 == 0)
      hidden.push_back(2 * width);
    given_document(1, {{"model", {{"use", "mlp"}, {"hidden", hidden}}}});
    write(std::string(name) + ".json", read("points.json"));
  }

  const Finished done = run({"latency", "a.json", "b.json", "c.json", "d.json", "-o", "m.json"});

  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("predicted us"));
  EXPECT_THAT(done.out, HasSubstr("a.json"));
  EXPECT_THAT(done.out, HasSubstr("the model of this machine is in m.json"));
}

}  // namespace
}  // namespace treadle
