#include <treadle/plan/passes.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/plan/op.h>
#include <treadle/plan/ops.h>
#include <treadle/plan/program.h>

namespace treadle::plan {
namespace {

using ::testing::ElementsAre;
using Kind = Instruction::Kind;

/// A program written by hand: values of one spec, [4, 2] in float64.
class Draft {
 public:
  explicit Draft(bool records_gradients = false) {
    program.sites.emplace_back();
    program.records_gradients = records_gradients;
  }

  SlotId value(Memory memory = Memory::kArena, std::vector<std::int64_t> sizes = {4, 2}) {
    Slot slot;
    slot.spec = TensorSpec(std::move(sizes), at::kDouble);
    slot.memory = memory;
    slot.root = program.slots.size();
    slot.needs_gradient = program.records_gradients;
    program.slots.push_back(std::move(slot));
    return program.slots.size() - 1;
  }

  SlotId input() {
    program.inputs.push_back(value(Memory::kInput));
    return program.inputs.back();
  }

  SlotId elementwise(ElementwiseRule rule, SlotId a, SlotId b = kNoSlot, double number = 0) {
    Instruction instruction;
    instruction.kind = Kind::kFusedKernel;
    instruction.inputs = {a};
    if (takes_two(rule))
      instruction.inputs.push_back(b);
    instruction.outputs = {value(Memory::kArena, program.slots[a].spec.sizes)};
    instruction.kernel.emplace(
        std::vector{FusedKernel::Step{rule, number, {false, 0}, {false, 1}, true}});
    return add(std::move(instruction));
  }

  SlotId softmax(SlotId a) {
    Instruction instruction;
    instruction.kind = Kind::kOperation;
    instruction.inputs = {a};
    instruction.outputs = {value()};
    instruction.operation = plan_softmax(-1);
    return add(std::move(instruction));
  }

  SlotId alias(SlotId a, std::vector<std::int64_t> sizes) {
    Instruction instruction;
    instruction.kind = Kind::kAlias;
    instruction.inputs = {a};
    instruction.outputs = {value(program.slots[a].memory, std::move(sizes))};
    program.slots[instruction.outputs[0]].root = program.slots[a].root;
    return add(std::move(instruction));
  }

  Program program;

 private:
  SlotId add(Instruction instruction) {
    program.forward.push_back(std::move(instruction));
    return program.forward.back().outputs[0];
  }
};

std::vector<std::string> operations(const std::vector<Instruction>& list) {
  std::vector<std::string> names;
  for (const Instruction& instruction : list) {
    std::string name;
    if (instruction.kernel) {
      for (const FusedKernel::Step& step : instruction.kernel->steps())
        name += (name.empty() ? "" : " ") + std::string(name_of(step.rule));
    } else {
      name = instruction.operation == nullptr ? "?" : std::string(instruction.operation->name());
    }
    names.push_back(name);
  }
  return names;
}

TEST(FuseElementwise, JoinsNeighboursAndWritesOnlyWhatIsRead) {
  Draft draft;
  const SlotId x = draft.input();
  const SlotId doubled = draft.elementwise(ElementwiseRule::kScale, x, kNoSlot, 2);
  const SlotId moved = draft.elementwise(ElementwiseRule::kShift, doubled, kNoSlot, 1);
  draft.program.outputs = {draft.elementwise(ElementwiseRule::kAdd, moved, x)};

  fuse_elementwise(draft.program);

  ASSERT_THAT(operations(draft.program.forward), ElementsAre("scale shift add"));
  const Instruction& kernel = draft.program.forward[0];
  EXPECT_THAT(kernel.inputs, ElementsAre(x));
  EXPECT_THAT(kernel.outputs, ElementsAre(draft.program.outputs[0]));
  EXPECT_EQ(draft.program.elementwise_ops, 3U);
}

TEST(FuseElementwise, WritesWhatSomebodyElseReadsThroughAnAliasToo) {
  Draft draft;
  const SlotId scaled = draft.elementwise(ElementwiseRule::kScale, draft.input(), kNoSlot, 2);
  const SlotId flat = draft.alias(scaled, {8});
  const SlotId moved = draft.elementwise(ElementwiseRule::kShift, scaled, kNoSlot, 1);
  draft.program.outputs = {flat, moved};

  fuse_elementwise(draft.program);

  ASSERT_THAT(operations(draft.program.forward), ElementsAre("scale shift"));
  EXPECT_THAT(draft.program.forward[0].outputs, ElementsAre(scaled, moved));
}

TEST(FuseElementwise, EndsWhereSizesDifferAndWhereAnOperationStands) {
  Draft draft;
  const SlotId x = draft.input();
  const SlotId a = draft.elementwise(ElementwiseRule::kRelu, x);
  const SlotId b = draft.elementwise(ElementwiseRule::kRelu, draft.alias(x, {8}));
  const SlotId c = draft.softmax(a);
  const SlotId d = draft.elementwise(ElementwiseRule::kShift, c, kNoSlot, 1);
  draft.program.outputs = {a, b, d};

  fuse_elementwise(draft.program);

  EXPECT_THAT(operations(draft.program.forward), ElementsAre("relu", "relu", "softmax", "shift"));
}

TEST(FuseElementwise, DropsWhatNobodyReads) {
  Draft draft;
  const SlotId x = draft.input();
  draft.elementwise(ElementwiseRule::kRelu, x);
  draft.program.outputs = {draft.softmax(x)};

  fuse_elementwise(draft.program);

  EXPECT_THAT(operations(draft.program.forward), ElementsAre("softmax"));
}

TEST(FuseElementwise, CutsLongKernels) {
  Draft draft;
  SlotId value = draft.input();
  for (std::size_t i = 0; i < FusedKernel::kMaxSteps + 1; ++i)
    value = draft.elementwise(ElementwiseRule::kShift, value, kNoSlot, 1);
  draft.program.outputs = {value};

  fuse_elementwise(draft.program);

  ASSERT_EQ(draft.program.forward.size(), 2U);
  EXPECT_EQ(draft.program.forward[0].kernel->steps().size(), FusedKernel::kMaxSteps);
}

TEST(AddBackward, AddsTheLastReadersGradientFirst) {
  Draft draft(/*records_gradients=*/true);
  const SlotId x = draft.input();
  for (const double factor : {2., 3., 5.})
    draft.program.outputs.push_back(draft.elementwise(ElementwiseRule::kScale, x, kNoSlot, factor));

  add_backward(draft.program);

  const std::vector<Instruction>& backward = draft.program.backward;
  ASSERT_THAT(operations(backward), ElementsAre("scale", "scale", "scale", "add", "add"));
  EXPECT_EQ(backward[0].kernel->steps()[0].number, 5);
  EXPECT_EQ(backward[2].kernel->steps()[0].number, 2);
  EXPECT_THAT(backward[3].inputs, ElementsAre(backward[0].outputs[0], backward[1].outputs[0]));
  EXPECT_THAT(backward[4].inputs, ElementsAre(backward[3].outputs[0], backward[2].outputs[0]));
  EXPECT_THAT(draft.program.input_gradients, ElementsAre(backward[4].outputs[0]));
}

TEST(AddBackward, SumsAtAnAccumulationPointBeforeTheOtherUsers) {
  Draft draft(/*records_gradients=*/true);
  const SlotId x = draft.input();
  const SlotId first = draft.elementwise(ElementwiseRule::kScale, x, kNoSlot, 2);
  const SlotId point = draft.alias(x, {4, 2});
  const SlotId second = draft.elementwise(ElementwiseRule::kScale, point, kNoSlot, 3);
  const SlotId third = draft.elementwise(ElementwiseRule::kScale, point, kNoSlot, 5);
  draft.program.outputs = {first, second, third};

  add_backward(draft.program);

  // (5 g + 3 g) + 2 g, the first sum at the point.
  const std::vector<Instruction>& backward = draft.program.backward;
  ASSERT_THAT(operations(backward), ElementsAre("scale", "scale", "add", "scale", "add"));
  EXPECT_THAT(backward[2].inputs, ElementsAre(backward[0].outputs[0], backward[1].outputs[0]));
  const SlotId arrived = backward[4].inputs[0];
  EXPECT_EQ(draft.program.slots[arrived].root, backward[2].outputs[0]);
  EXPECT_EQ(backward[4].inputs[1], backward[3].outputs[0]);
}

TEST(AddBackward, GivesNothingWhereNoGradientIsNeeded) {
  Draft draft(/*records_gradients=*/true);
  const SlotId x = draft.input();
  draft.program.slots[x].needs_gradient = false;
  draft.program.outputs = {draft.elementwise(ElementwiseRule::kScale, x, kNoSlot, 2)};
  draft.program.slots[draft.program.outputs[0]].needs_gradient = false;

  add_backward(draft.program);

  EXPECT_TRUE(draft.program.backward.empty());
  EXPECT_THAT(draft.program.output_gradients, ElementsAre(kNoSlot));
  EXPECT_THAT(draft.program.input_gradients, ElementsAre(kNoSlot));
}

TEST(LayOut, SharesMemoryOnlyBetweenValuesThatDoNotLiveTogether) {
  Draft draft;
  const SlotId a = draft.softmax(draft.input());
  const SlotId b = draft.softmax(a);
  const SlotId c = draft.softmax(b);
  draft.program.outputs = {draft.softmax(c)};

  lay_out(draft.program);

  const std::vector<Slot>& slots = draft.program.slots;
  EXPECT_EQ(slots[a].offset, slots[c].offset) << "a is done when c is written";
  EXPECT_NE(slots[a].offset, slots[b].offset);
  EXPECT_EQ(draft.program.arena_bytes, 512U);
  EXPECT_EQ(slots[a].last_use, 1U);
  EXPECT_EQ(slots[draft.program.outputs[0]].memory, Memory::kOutput);
}

TEST(LayOut, LetsAKernelWriteOverAnInputThatNothingReadsLater) {
  Draft draft;
  const SlotId a = draft.softmax(draft.input());
  const SlotId b = draft.elementwise(ElementwiseRule::kRelu, a);
  const SlotId c = draft.elementwise(ElementwiseRule::kAdd, b, b);
  draft.program.outputs = {draft.softmax(c)};

  lay_out(draft.program);

  const std::vector<Slot>& slots = draft.program.slots;
  EXPECT_EQ(slots[a].offset, slots[b].offset);
  EXPECT_EQ(draft.program.arena_bytes, 512U) << "an input that is given twice is not overwritten";
}

TEST(LayOut, KeepsValuesOfTheForwardForTheBackward) {
  Draft draft(/*records_gradients=*/true);
  const SlotId a = draft.softmax(draft.input());
  const SlotId b = draft.softmax(a);
  draft.program.outputs = {draft.softmax(b)};

  complete(draft.program);

  // The gradient of softmax reads its output, so a and b live side by side.
  EXPECT_NE(draft.program.slots[a].offset, draft.program.slots[b].offset);
  EXPECT_EQ(draft.program.slots[a].last_use, draft.program.forward.size() + 2);
}

}  // namespace
}  // namespace treadle::plan
