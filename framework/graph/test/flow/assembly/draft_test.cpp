#include "flow/assembly/draft.h"

#include <new>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "small_parts.h"

namespace treadle::graph {
namespace {

using ::testing::ElementsAre;

/// The draft of input -> "a" -> "b", without any sizes.
class ADraft : public ::testing::Test {
 protected:
  ADraft() {
    draft_.order = {0, 1, 2};
    draft_.graph->nodes.resize(3);
    for (std::size_t place = 0; place < 3; ++place)
      draft_.graph->nodes[place].id = draft_.wanted(place).id;
    draft_.graph->nodes[2].inputs = {{1, "input"}};
  }
  std::vector<std::string> messages() const {
    std::vector<std::string> messages;
    for (const Problem& problem : problems_)
      messages.push_back(problem.message);
    return messages;
  }

  const FlowBuilder flow_ =
      FlowBuilder::from(testing::times(1)).named("a").through(testing::times(2)).named("b");
  const Wired wired_ = wire(flow_);
  std::vector<Problem> problems_;
  Draft draft_{flow_, wired_, nullptr, problems_, 1};
};

TEST_F(ADraft, ReportsAnExceptionWithTheInputsOfThePlace) {
  draft_.graph->nodes[2].type = "times";
  EXPECT_FALSE(draft_.attempt(2, [] { throw std::runtime_error("no room"); }));
  draft_.graph->nodes[1].result = TensorSpec({TensorSpec::kVaries, 4}, at::kFloat);
  EXPECT_FALSE(draft_.attempt(2, [] { throw std::runtime_error("no room"); }));
  EXPECT_THAT(
      messages(),
      ElementsAre("through() in step 2: \"b\" (times) cannot take what comes from \"a\": no room",
                  "through() in step 2: \"b\" (times) cannot take [B, 4] from \"a\": no room"));
}

TEST_F(ADraft, ReportsNothingOfWorkThatSucceeds) {
  EXPECT_TRUE(draft_.attempt(2, [] {}));
  EXPECT_THAT(messages(), ElementsAre());
}

TEST_F(ADraft, PassesOnThatMemoryIsFull) {
  EXPECT_THROW(draft_.attempt(2, [] { throw std::bad_alloc(); }), std::bad_alloc);
  EXPECT_THAT(messages(), ElementsAre());
}

TEST_F(ADraft, HasTheSizesOfInputsOnceAllAreKnown) {
  EXPECT_EQ(draft_.specs_of_inputs(2), std::nullopt);
  const TensorSpec spec({TensorSpec::kVaries, 4}, at::kFloat);
  draft_.graph->nodes[1].result = spec;
  EXPECT_EQ(draft_.specs_of_inputs(2), std::vector{spec});
}

}  // namespace
}  // namespace treadle::graph
