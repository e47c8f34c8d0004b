#include <treadle/core/components/state_dict.h>

#include <gtest/gtest.h>

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>

#include <cmath>
#include <limits>

#include <treadle/base/error.h>

namespace treadle {
namespace {

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(StateDict, SaysWhatIsMissingAndWhatIsThere) {
  StateDict state;
  state.put("momentum", at::ones({2}));
  state.put("velocity", at::ones({2}));

  EXPECT_EQ(message_of([&] { state.tensor("exp_avg"); }),
            "saved state has no tensor \"exp_avg\"; it has momentum, velocity");
  EXPECT_EQ(message_of([&] { state.value("step"); }),
            "saved state has no value \"step\"; it has nothing");
}

TEST(StateDict, KeepsEveryDoubleBitForBit) {
  const double values[] = {0.1, -0.0, 1e-310, std::nan(""),
                           std::numeric_limits<double>::infinity()};
  for (const double value : values) {
    StateDict state;
    state.put_number("x", value);

    // Through text, as in a checkpoint.
    StateDict read;
    read.put("x", nlohmann::json::parse(state.value("x").dump()));

    EXPECT_EQ(std::bit_cast<std::uint64_t>(read.number("x").value()),
              std::bit_cast<std::uint64_t>(value));
  }
}

TEST(StateDict, SnapshotDoesNotFollowItsOriginal) {
  at::Tensor weight = at::ones({3});
  StateDict state;
  StateDict part;
  part.put("weight", weight);
  state.put("model", part);

  const StateDict snapshot = state.snapshot();
  weight.zero_();

  EXPECT_TRUE(at::equal(snapshot.part("model").tensor("weight"), at::ones({3})));
  EXPECT_TRUE(at::equal(state.part("model").tensor("weight"), weight));
}

TEST(StateDict, RefusesNamesThatLookLikePaths) {
  StateDict state;
  EXPECT_THROW(state.put("a/b", nlohmann::json(1)), ContractViolation);
  EXPECT_THROW(state.put("", nlohmann::json(1)), ContractViolation);
}

}  // namespace
}  // namespace treadle
