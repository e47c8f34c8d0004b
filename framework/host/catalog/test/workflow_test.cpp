#include <treadle/host/catalog/workflow.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/host/catalog/workflow_document.h>

#include "fake_components.h"

namespace treadle {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

Workflow moons() {
  Workflow workflow("moons");
  workflow.use("data", "moons", {{"rows", 100}})
      .use("model", "mlp", {{"hidden", {16, 8}}})
      .set("seed", 7);
  return workflow;
}

std::string refusal_of(const Workflow& workflow) {
  try {
    resolve_workflow(workflow.document(), FakeComponents());
  } catch (const DocumentError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Workflow, IsTheDocumentThatItsPartsMake) {
  EXPECT_EQ(moons().json(), json::parse(R"({"treadle": 1, "name": "moons", "seed": 7,
      "data": {"use": "moons", "rows": 100}, "model": {"use": "mlp", "hidden": [16, 8]}})"));
}

TEST(Workflow, AppendsToListsThatAreThereOrNot) {
  Workflow workflow = moons();

  workflow.add("metrics", "accuracy").add("metrics", "auc", {{"average", "macro"}});

  EXPECT_EQ(workflow.json().at("metrics"),
            json::parse(R"([{"use": "accuracy"}, {"use": "auc", "average": "macro"}])"));
}

TEST(Workflow, AppendsToListsWithinAComponentAndBehindASingleValue) {
  Workflow workflow = moons();
  workflow.use("training", "standard").set("metrics", "accuracy");

  workflow.add("training.callbacks", "early_stopping").add("training.callbacks", "ema");
  workflow.add("metrics", "auc");

  EXPECT_EQ(workflow.json().at("training").at("callbacks"),
            json::parse(R"([{"use": "early_stopping"}, {"use": "ema"}])"));
  EXPECT_EQ(workflow.json().at("metrics"), json::parse(R"(["accuracy", {"use": "auc"}])"));
}

TEST(Workflow, IsIndependentOfItsCopyAndOfAChangeThatFailed) {
  for (const Workflow& original : {moons(), Workflow::parse(R"({"treadle": 1, "seed": 7})")}) {
    const json before = original.json();
    Workflow copy = original;
    copy.set("seed", 8);
    EXPECT_EQ(original.json(), before);

    Workflow failed = original;
    EXPECT_THROW(failed.set("seed.below.it", 1), UsageError);
    EXPECT_EQ(failed.json(), before);
    EXPECT_EQ(failed.set("seed", 9).document()->value().at("seed"), 9);
  }
}

// Text that reads as a number stays text, which --set would not leave so.
TEST(Workflow, SetsValuesOfTheTypesTheyHave) {
  Workflow workflow = moons();

  workflow.set("data.label", "12").set("data.rows", 50).set("model.hidden.1", 4);

  EXPECT_EQ(workflow.json().at("data"), json({{"use", "moons"}, {"rows", 50}, {"label", "12"}}));
  EXPECT_EQ(workflow.json().at("model").at("hidden"), json({16, 4}));
}

TEST(Workflow, ThatWasParsedKeepsThePlacesOfItsValues) {
  Workflow workflow = Workflow::parse(R"({
    // written by a person
    "treadle": 1,
    "data": "moons",
    "model": {"use": "mpl"}
  })",
                                      "mine.json");
  workflow.set("data.rows", -5);

  const std::string refusal = refusal_of(workflow);

  EXPECT_THAT(refusal, AllOf(HasSubstr("mine.json:5"), HasSubstr("no model \"mpl\"")));
  EXPECT_THAT(refusal, HasSubstr("--set data.rows=-5"));
}

TEST(Workflow, ThatIsNoJsonIsRefusedWithItsPlace) {
  try {
    Workflow::parse("{\"treadle\": 1,\n \"data\" \"moons\"}", "mine.json");
    ADD_FAILURE() << "that is no JSON";
  } catch (const DocumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("mine.json:2"));
  }
}

TEST(Workflow, DoesNotChangeADocumentThatWasTakenBefore) {
  for (Workflow workflow : {moons(), Workflow::parse(R"({"treadle": 1, "seed": 7})")}) {
    const auto before = workflow.document();
    workflow.set("seed", 8);
    EXPECT_EQ(before->value().at("seed"), 7);
    EXPECT_EQ(workflow.document()->value().at("seed"), 8);
  }
}

}  // namespace
}  // namespace treadle
