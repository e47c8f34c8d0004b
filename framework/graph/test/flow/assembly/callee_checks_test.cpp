#include "flow/assembly/callee_checks.h"

#include <memory>
#include <utility>

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/model/abilities/keeps_state.h>
#include <treadle/core/model/abilities/takes_indices.h>
#include <treadle/testing/support/expect_problem.h>

#include "flow/selector.h"

namespace treadle::graph {
namespace {

using ::testing::HasSubstr;

struct PlainLayer : Layer {
  at::Tensor forward(const Inputs& inputs, LayerContext&) override { return inputs[0]; }
};

struct StatefulLayer : PlainLayer, KeepsState {};

struct LookupLayer : PlainLayer, TakesIndices {
  bool takes_indices(std::size_t index) const override { return index == 0; }
};

struct ChoosingLayer : PlainLayer, Selector {
  ChoosingLayer(std::int64_t first, std::int64_t last, bool by_row)
      : first_(first), last_(last), by_row_(by_row) {}
  std::int64_t first() const override { return first_; }
  std::int64_t last() const override { return last_; }
  bool chooses_by_row() const override { return by_row_; }

 private:
  std::int64_t first_;
  std::int64_t last_;
  bool by_row_;
};

Callee callee(const std::shared_ptr<Layer>& layer) {
  return {"part", "part", layer, layer};
}

/// The message for a switch "s" with such a router and two branches; empty: they suit it.
std::string misfit_of_switch(
    SwitchBy by, const std::shared_ptr<Layer>& router,
    const std::shared_ptr<Layer>& branch = std::make_shared<PlainLayer>()) {
  const FlowStep step{.verb = Verb::kSwitch, .switch_by = by};
  const WantedNode node{.id = "s", .type = "switch", .kind = NodeKind::kSwitch, .step = &step};
  return misfit_of_branches(
             node, {callee(router), callee(std::make_shared<PlainLayer>()), callee(branch)})
      .value_or("");
}

TEST(MisfitOfBranches, AcceptsRoutersThatChooseAllBranchesOrOne) {
  EXPECT_EQ(misfit_of_switch(SwitchBy::kBatch, std::make_shared<PlainLayer>()), "");
  EXPECT_EQ(misfit_of_switch(SwitchBy::kBatch, std::make_shared<ChoosingLayer>(0, 1, false)), "");
  EXPECT_EQ(misfit_of_switch(SwitchBy::kRow, std::make_shared<ChoosingLayer>(0, 1, true)), "");
  EXPECT_EQ(misfit_of_switch(SwitchBy::kBatch, std::make_shared<ChoosingLayer>(1, 1, false)), "");
}

TEST(MisfitOfBranches, NamesTheBranchesThatARouterChooses) {
  EXPECT_EQ(misfit_of_switch(SwitchBy::kBatch, std::make_shared<ChoosingLayer>(0, 2, false)),
            "\"s\": the router \"part\" chooses branches 0 to 2, but the switch has branches 0 to "
            "1");
  EXPECT_THAT(misfit_of_switch(SwitchBy::kBatch, std::make_shared<ChoosingLayer>(2, 2, false)),
              HasSubstr("chooses branch 2,"));
}

TEST(MisfitOfBranches, ComparesTheWayOfChoosing) {
  EXPECT_THAT(misfit_of_switch(SwitchBy::kRow, std::make_shared<ChoosingLayer>(0, 1, false)),
              HasSubstr("goes by row, but its router \"part\" chooses once for the whole batch"));
  EXPECT_THAT(misfit_of_switch(SwitchBy::kBatch, std::make_shared<ChoosingLayer>(0, 1, true)),
              HasSubstr("goes by batch, but its router \"part\" chooses for each row"));
}

TEST(MisfitOfBranches, RefusesStatesWhereRowsChange) {
  const auto state = std::make_shared<StatefulLayer>();
  EXPECT_THAT(misfit_of_switch(SwitchBy::kRow, std::make_shared<PlainLayer>(), state),
              HasSubstr("\"s\": branch 1 has a state"));
  EXPECT_EQ(misfit_of_switch(SwitchBy::kBatch, std::make_shared<PlainLayer>(), state), "");

  WantedNode mixture{.id = "m", .type = "mixture", .kind = NodeKind::kMixture};
  const std::vector<Callee> experts{callee(std::make_shared<PlainLayer>()), callee(state)};
  EXPECT_THAT(misfit_of_branches(mixture, experts).value_or(""),
              HasSubstr("\"m\": expert 0 has a state"));
  mixture.kind = NodeKind::kLoop;
  EXPECT_EQ(misfit_of_branches(mixture, experts), std::nullopt);
}

TEST(ExpectNumbers, RefusesIntegersUnlessTheLayerTakesThem) {
  const TensorSpec numbers({TensorSpec::kVaries, 3}, at::kFloat);
  const TensorSpec indices({TensorSpec::kVaries, 3}, at::kLong);
  const TensorSpec mask({TensorSpec::kVaries, 3}, at::kBool);
  const auto refusal = [](const std::shared_ptr<Layer>& layer, std::vector<TensorSpec> inputs) {
    try {
      expect_numbers(callee(layer), inputs);
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto plain = std::make_shared<PlainLayer>();
  const auto lookup = std::make_shared<LookupLayer>();
  EXPECT_EQ(refusal(plain, {numbers, TensorSpec::absent()}), "");
  EXPECT_THAT(refusal(plain, {numbers, indices}), HasSubstr("are indices of tokens or categories"));
  EXPECT_THAT(refusal(plain, {mask}), HasSubstr("it computes with floating-point numbers"));
  EXPECT_EQ(refusal(lookup, {indices, numbers}), "");
  EXPECT_THAT(refusal(lookup, {indices, indices}), HasSubstr("it computes with numbers"));
}

}  // namespace
}  // namespace treadle::graph
