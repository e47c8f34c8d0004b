#include <treadle/testing/support/rehearsal.h>

#include <cmath>

#include <ATen/ops/equal.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <treadle/core/components/module_state.h>
#include <treadle/core/training/training_callback.h>
#include <treadle/core/training/training_workflow.h>
#include <treadle/engine/session.h>
#include <treadle/testing/model/recording_context.h>
#include <treadle/testing/support/tiny_data.h>
#include <treadle/testing/training/training_fakes.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace treadle::testing {

bool same_bits(const StateDict& a, const StateDict& b) {
  if (a.tensors().size() != b.tensors().size() || a.parts().size() != b.parts().size() ||
      a.values() != b.values())
    return false;
  for (const auto& [name, tensor] : a.tensors()) {
    if (!b.has_tensor(name) || !at::equal(tensor, b.tensor(name)))
      return false;
  }
  for (const auto& [name, part] : a.parts()) {
    if (!b.has_part(name) || !same_bits(part, b.part(name)))
      return false;
  }
  return true;
}

bool is_finite(const StateDict& state) {
  for (const auto& [name, tensor] : state.tensors()) {
    if (!tensor.isfinite().all().item<bool>())
      return false;
  }
  for (const auto& [name, part] : state.parts()) {
    if (!is_finite(part))
      return false;
  }
  return true;
}

namespace {

void expect_same_number(const Number& got, const Number& expected) {
  EXPECT_EQ(got.why(), expected.why());
  if (!std::isnan(got) || !std::isnan(expected)) {
    EXPECT_EQ(got, expected);
  }
}

}  // namespace

void expect_same_history(const std::vector<EpochSummary>& got,
                         const std::vector<EpochSummary>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE("epoch " + std::to_string(expected[i].epoch));
    EXPECT_EQ(got[i].epoch, expected[i].epoch);
    EXPECT_EQ(got[i].epochs, expected[i].epochs);
    EXPECT_EQ(got[i].step, expected[i].step);
    EXPECT_EQ(got[i].learning_rate, expected[i].learning_rate);
    expect_same_number(got[i].train_loss, expected[i].train_loss);
    ASSERT_EQ(got[i].val_loss.has_value(), expected[i].val_loss.has_value());
    if (got[i].val_loss)
      expect_same_number(*got[i].val_loss, *expected[i].val_loss);
    EXPECT_EQ(got[i].best, expected[i].best);
    ASSERT_EQ(got[i].metrics.size(), expected[i].metrics.size());
    for (std::size_t m = 0; m < got[i].metrics.size(); ++m) {
      EXPECT_EQ(got[i].metrics[m].name, expected[i].metrics[m].name);
      expect_same_number(got[i].metrics[m].value, expected[i].metrics[m].value);
    }
    ASSERT_EQ(got[i].logged.size(), expected[i].logged.size());
    for (std::size_t m = 0; m < got[i].logged.size(); ++m) {
      EXPECT_EQ(got[i].logged[m].name, expected[i].logged[m].name);
      expect_same_number(got[i].logged[m].value, expected[i].logged[m].value);
    }
    EXPECT_EQ(got[i].decisions, expected[i].decisions);
  }
}

void expect_same_result(const engine::TrainingResult& got, const engine::TrainingResult& expected) {
  expect_same_number(got.final_loss, expected.final_loss);
  expect_same_number(got.best_loss, expected.best_loss);
  EXPECT_EQ(got.best_epoch, expected.best_epoch);
  EXPECT_EQ(got.total_epochs, expected.total_epochs);
  EXPECT_EQ(got.selects_best, expected.selects_best);
  EXPECT_EQ(got.chosen_by, expected.chosen_by);
  EXPECT_EQ(got.has_average, expected.has_average);
  EXPECT_EQ(got.stop_reason, expected.stop_reason);
}

}  // namespace treadle::testing
