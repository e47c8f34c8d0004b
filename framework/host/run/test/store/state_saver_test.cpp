#include <future>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

#include "store/state_saver.h"

namespace treadle::internal {
namespace {

using ::testing::ElementsAre;

/// A state as a training has it: handles to tensors that the next step overwrites.
StateDict state_of(const at::Tensor& weights, const at::Tensor& moment, int step) {
  StateDict model;
  model.put("weights", weights);
  StateDict state(3);
  state.put("model", std::move(model));
  state.put("moment", moment);
  state.put("step", nlohmann::json(step));
  return state;
}

double weight_in(const StateDict& state) {
  return state.part("model").tensor("weights").sum().item<double>();
}

TEST(StateSnapshot, IsTheStateAsItWas) {
  at::Tensor weights = at::arange(6, at::kFloat).view({2, 3}).requires_grad_();
  at::Tensor moment = at::full({4}, 0.5, at::kDouble);
  StateSnapshot snapshot;

  snapshot.take(state_of(weights, moment, 7));
  weights.detach().zero_();
  moment.zero_();

  const StateDict& copy = snapshot.state();
  EXPECT_EQ(copy.version(), 3);
  EXPECT_EQ(copy.value("step"), 7);
  EXPECT_TRUE(copy.part("model").tensor("weights").equal(at::arange(6, at::kFloat).view({2, 3})));
  EXPECT_FALSE(copy.part("model").tensor("weights").requires_grad());
  EXPECT_TRUE(copy.tensor("moment").equal(at::full({4}, 0.5, at::kDouble)));
}

TEST(StateSnapshot, CopiesIntoTheSameMemoryAgain) {
  const at::Tensor weights = at::full({1000}, 1.0);
  const at::Tensor moment = at::full({4}, 0.5, at::kDouble);
  StateSnapshot snapshot;
  snapshot.take(state_of(weights, moment, 1));
  const void* memory = snapshot.state().part("model").tensor("weights").data_ptr();

  weights.fill_(2);
  snapshot.take(state_of(weights, moment, 2));

  EXPECT_EQ(snapshot.state().part("model").tensor("weights").data_ptr(), memory);
  EXPECT_EQ(weight_in(snapshot.state()), 2000);
}

TEST(StateSnapshot, FollowsAStateThatChangesItsShape) {
  StateSnapshot snapshot;
  snapshot.take(state_of(at::full({2}, 1.0), at::full({4}, 0.5), 1));
  StateDict other;
  other.put("moment", at::full({4}, 2, at::kDouble));
  StateDict model;
  model.put("weights", at::full({3, 1}, 1.0));
  other.put("best", std::move(model));

  snapshot.take(other);

  EXPECT_FALSE(snapshot.state().has_part("model"));
  EXPECT_TRUE(snapshot.state().tensor("moment").equal(at::full({4}, 2, at::kDouble)));
  EXPECT_TRUE(snapshot.state().part("best").tensor("weights").equal(at::full({3, 1}, 1.0)));
}

TEST(StateSnapshot, CopiesWhatDoesNotLieInOneRow) {
  const at::Tensor transposed = at::arange(6, at::kFloat).view({2, 3}).t();
  StateDict state;
  state.put("t", transposed);
  StateSnapshot snapshot;

  snapshot.take(state);

  EXPECT_TRUE(snapshot.state().tensor("t").is_contiguous());
  EXPECT_TRUE(snapshot.state().tensor("t").equal(transposed));
}

/// Writes into a list, and only when it may.
class SlowDisk {
 public:
  std::function<void(const StateDict&)> write() {
    return [this](const StateDict& state) {
      if (blocks_) {
        begun_.set_value();
        open_.get_future().wait();
      }
      blocks_ = false;
      written_.push_back(weight_in(state));
    };
  }
  void wait_until_begun() { begun_.get_future().wait(); }
  void open() { open_.set_value(); }
  const std::vector<double>& written() const { return written_; }

 private:
  bool blocks_ = true;  // the first time
  std::promise<void> begun_;
  std::promise<void> open_;
  std::vector<double> written_;
};

TEST(StateSaver, WritesWhatWasThereWhenItWasSavedAndTheNewestOfWhatWaits) {
  BackgroundWriter writer;
  StateSaver saver(writer);
  SlowDisk disk;
  const at::Tensor weights = at::full({1}, 0.0);
  const at::Tensor moment = at::full({1}, 0.0);

  for (int step = 1; step <= 9; ++step) {
    weights.fill_(step);
    saver.save(state_of(weights, moment, step), disk.write());
    if (step == 1)
      disk.wait_until_begun();
  }
  weights.fill_(-1);
  disk.open();
  saver.finish();

  EXPECT_THAT(disk.written(), ElementsAre(1, 9));
}

TEST(StateSaver, WhatIsBeingWrittenIsNotOverwritten) {
  BackgroundWriter writer;
  StateSaver saver(writer);
  const at::Tensor weights = at::full({10'000}, 0.0);
  const at::Tensor moment = at::full({1}, 0.0);
  int written = 0;
  int torn = 0;

  for (int step = 1; step <= 2000; ++step) {
    weights.fill_(step);
    saver.save(state_of(weights, moment, step), [&](const StateDict& state) {
      const at::Tensor& copy = state.part("model").tensor("weights");
      const double step_written = state.value("step").get<double>();
      torn += copy.eq(step_written).all().item<bool>() ? 0 : 1;
      ++written;
    });
    if (step == 1000)
      saver.finish();  // on a busy machine nothing may have been written so far
  }
  saver.finish();

  EXPECT_EQ(torn, 0);
  EXPECT_GE(written, 2);
}

TEST(StateSaver, AFailureComesOutAtTheNextSaveAndAtTheEnd) {
  BackgroundWriter writer;
  StateSaver saver(writer);
  const StateDict state = state_of(at::full({1}, 1.0), at::full({1}, 1.0), 1);
  bool written = false;

  saver.save(state, [](const StateDict&) { throw StorageError("run/step-1: no room"); });
  saver.wait();

  EXPECT_THROW(saver.expect_no_failure(), StorageError);
  EXPECT_THROW(saver.save(state, [&](const StateDict&) { written = true; }), StorageError);
  EXPECT_THROW(saver.finish(), StorageError);
  EXPECT_FALSE(written);
}

TEST(StateSaver, FinishesWhatItBeganWhenItGoes) {
  BackgroundWriter writer;
  std::vector<int> written;
  {
    StateSaver saver(writer);
    for (int step = 1; step <= 2; ++step) {
      saver.save(
          state_of(at::full({1}, 1.0), at::full({1}, 1.0), step),
          [&](const StateDict& state) { written.push_back(state.value("step").get<int>()); });
    }
  }
  EXPECT_EQ(written.back(), 2);
}

}  // namespace
}  // namespace treadle::internal
