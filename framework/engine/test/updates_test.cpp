// Steps of several updates: of some parameters, on rows of their own, with losses of their own.
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/testing/support/whole_training.h>

namespace treadle::engine {
namespace {

using ::testing::HasSubstr;
using testing::RecordingContext;
using testing::Rehearsal;
using testing::Rehearsed;
using testing::Whole;

constexpr const char* kAside = "aside";
constexpr const char* kSquare = "square";

/// Σ over rows of the squared output.
LossTerms square_of_outputs(Model& model, const Batch& batch, ForwardContext& context) {
  Outputs outputs(1);
  model(batch.inputs, outputs, context);
  return {outputs[0].square().sum(), {}};
}

bool is_hidden(std::string_view name) {
  return name.find("hidden") != std::string_view::npos;
}

/// Before each step of the other parameters, one of the hidden layer: on rows set aside, and with a
/// loss of its own.
class TwoKinds final : public TrainingWorkflow {
 public:
  using Watch = std::function<void(const std::string& update)>;
  explicit TwoKinds(Watch watch = [](const std::string&) {}) : watch_(std::move(watch)) {}

  double loss_aside = 0;  // after training

 private:
  LoopNeeds do_needs() const override {
    LoopNeeds needs;
    needs.parts = {{kAside, 0.3}};
    needs.losses = {kSquare};
    return needs;
  }

  void do_train(TrainingSession& session) override {
    const ParameterSet hidden = session.parameters(is_hidden);
    const ParameterSet rest =
        session.parameters([](std::string_view name) { return !is_hidden(name); });
    while (session.next_epoch()) {
      while (const std::optional<Batch> batch = session.next_batch()) {
        const double rate = session.scheduled_rate();
        session.update(session.next_batch(kAside), {.learning_rate = rate,
                                                    .name = kSquare,
                                                    .parameters = &hidden,
                                                    .loss = square_of_outputs});
        watch_("square");
        session.update(*batch, {.learning_rate = rate, .parameters = &rest});
        watch_("own");
      }
      session.finish_epoch();
    }
    loss_aside = session.evaluate(kAside).loss;
  }

  Watch watch_;
};

testing::MakeRehearsal rehearsed(const Rehearsed& rehearsed = {}) {
  return
      [rehearsed] { return std::make_unique<Rehearsal>(std::make_unique<TwoKinds>(), rehearsed); };
}

TEST(Updates, EachKindChangesItsOwnParameters) {
  std::vector<std::string> changes;
  StateDict before;
  std::unique_ptr<Rehearsal> rehearsal;
  rehearsal = std::make_unique<Rehearsal>(
      std::make_unique<TwoKinds>([&](const std::string& update) {
        StateDict now = rehearsal->weights();
        std::string change = update;
        for (const char* const name : {"hidden.weight", "output.weight"}) {
          if (!at::equal(now.tensor(name), before.tensor(name)))
            change += std::string(" ") + name;
        }
        changes.push_back(std::move(change));
        before = std::move(now);
      }),
      Rehearsed{.epochs = 2});
  before = rehearsal->weights();
  RecordingContext context;

  rehearsal->train(context);

  ASSERT_EQ(changes.size(), 2 * 2 * rehearsal->steps_per_epoch());
  for (std::size_t i = 0; i < changes.size(); i += 2) {
    EXPECT_EQ(changes[i], "square hidden.weight") << i;
    EXPECT_EQ(changes[i + 1], "own output.weight") << i;
  }
}

TEST(Updates, StopsAndCheckpointsChangeNothing) {
  testing::expect_stops_after_every_step_change_nothing(rehearsed());
  testing::expect_every_checkpoint_leads_to_the_same_end(rehearsed());
}

TEST(Updates, ByTensorsTheyAreThoseOfTheHostsNumbers) {
  const Whole host(rehearsed({.epochs = 2, .dropout = 0})());
  const Whole tensors(
      rehearsed({.epochs = 2, .dropout = 0, .path = ParameterView::Path::kTensors})());
  for (std::size_t i = 0; i < host.context.epochs().size(); ++i) {
    EXPECT_NEAR(host.context.epochs()[i].train_loss, tensors.context.epochs()[i].train_loss, 1e-9);
    EXPECT_NEAR(host.context.epochs()[i].logged.back().value,
                tensors.context.epochs()[i].logged.back().value, 1e-9);
  }
}

TEST(Updates, TheMeanOfALossOfTheLoopIsInTheHistory) {
  // With next to no learning rate it is that of the untrained model, over the rows of each batch.
  const Rehearsed still{.epochs = 1, .learning_rate = 1e-12, .dropout = 0};
  const Whole whole(rehearsed(still)());
  Rehearsal untrained(still);
  const at::NoGradGuard no_gradients;
  untrained.model().eval();
  testing::Tenfold transform;
  testing::TableSource aside(testing::noisy_line(20, 4, 0.1), transform,
                             {.batch_size = Rehearsal::kBatch, .shuffle = true});
  double sum = 0;
  double rows = 0;
  for (std::int64_t step = 0; step < untrained.steps_per_epoch(); ++step) {
    const auto stream = aside.epoch(step / 2, step % 2);  // two batches a pass
    Batch batch;
    ASSERT_TRUE(stream->next(batch));
    ForwardContext context;
    sum += square_of_outputs(untrained.model(), batch, context).sum.item<double>();
    rows += static_cast<double>(batch.size());
  }

  const MetricValue& logged = whole.context.epochs().front().logged.back();

  EXPECT_EQ(logged.name, "loss.square");
  EXPECT_NEAR(logged.value, sum / rows, 1e-6 * sum / rows);
}

TEST(Updates, RowsAreEvaluatedByTheirName) {
  auto loop = std::make_unique<TwoKinds>();
  TwoKinds& kept = *loop;
  Rehearsal rehearsal(std::move(loop), {.epochs = 1});
  RecordingContext context;
  rehearsal.train(context);
  testing::Tenfold transform;
  testing::TableSource aside(testing::noisy_line(20, 4, 0.1), transform, {.batch_size = 10});
  EXPECT_NEAR(kept.loss_aside, rehearsal.loss_on(aside), 1e-12);
}

/// Does one thing in its first step.
class Once final : public TrainingWorkflow {
 public:
  explicit Once(std::function<void(TrainingSession&, const Batch&)> act) : act_(std::move(act)) {}

 private:
  void do_train(TrainingSession& session) override {
    session.next_epoch();
    act_(session, *session.next_batch());
  }
  std::function<void(TrainingSession&, const Batch&)> act_;
};

std::string refusal_of(std::function<void(TrainingSession&, const Batch&)> act) {
  Rehearsal rehearsal(std::make_unique<Once>(std::move(act)));
  RecordingContext context;
  try {
    rehearsal.train(context);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

LossTerms no_number(Model& model, const Batch& batch, ForwardContext& context) {
  LossTerms terms = square_of_outputs(model, batch, context);
  return {terms.sum * std::nan(""), {}};
}

/// Each step has an update whose loss is no number, and the usual one.
class HalfBroken final : public TrainingWorkflow {
  LoopNeeds do_needs() const override {
    LoopNeeds needs;
    needs.losses = {"broken"};
    return needs;
  }
  void do_train(TrainingSession& session) override {
    while (session.next_epoch()) {
      while (const std::optional<Batch> batch = session.next_batch()) {
        const double rate = session.scheduled_rate();
        session.update(*batch, {.learning_rate = rate, .name = "broken", .loss = no_number});
        session.update(*batch, {.learning_rate = rate});
      }
      session.finish_epoch();
    }
  }
};

class Tolerant final : public TrainingCallback {
  void do_begin(TrainingControl& control) override { control.tolerate_skipped_steps(100); }
};

TEST(Updates, ThatAreSkippedAreCountedByTheirLoss) {
  Rehearsal::Callbacks callbacks;
  callbacks.push_back(std::make_unique<Tolerant>());
  Rehearsal tolerant(std::make_unique<HalfBroken>(), {.epochs = 2}, std::move(callbacks));
  RecordingContext context;
  const TrainingResult result = tolerant.train(context);
  EXPECT_EQ(result.skipped_steps, tolerant.total_steps());
  EXPECT_THAT(
      context.epochs().front().decisions.front(),
      HasSubstr(std::to_string(tolerant.steps_per_epoch()) + " updates of the loss broken"));

  Rehearsal strict(std::make_unique<HalfBroken>(), {.epochs = 2});
  RecordingContext other;
  EXPECT_THROW(strict.train(other), TrainingError);
}

TEST(Updates, WhatALoopHasNotDeclaredIsRefused) {
  EXPECT_THAT(refusal_of([](auto& session, const Batch&) { session.next_batch("other"); }),
              HasSubstr("\"other\""));
  EXPECT_THAT(refusal_of([](auto& session, const Batch& batch) {
                session.update(batch, {.learning_rate = 1, .name = "x", .loss = square_of_outputs});
              }),
              HasSubstr("\"x\" is not declared"));
  EXPECT_THAT(refusal_of([](auto& session, const Batch& batch) {
                session.update(batch, {.learning_rate = 1});
                session.update(batch, {.learning_rate = 1});
              }),
              HasSubstr("one update without a name"));
  EXPECT_THAT(refusal_of([](auto& session, const Batch& batch) { session.evaluate(batch); }),
              HasSubstr("without validation rows"));
}

TEST(Updates, AllRowsComeAtOnceInTheirOrder) {
  std::optional<Batch> all;
  refusal_of([&](auto& session, const Batch&) { all = read_all(*session.read("training")); });
  ASSERT_TRUE(all);
  EXPECT_TRUE(at::equal(all->rows, at::arange(Rehearsal::kTrainingRows)));
  EXPECT_EQ(all->inputs[0].size(0), Rehearsal::kTrainingRows);
}

}  // namespace
}  // namespace treadle::engine
