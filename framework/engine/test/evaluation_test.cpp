#include <treadle/core/data/batch_list.h>
#include <treadle/core/data/transform.h>
#include <treadle/core/model/layer.h>
#include <treadle/engine/evaluation.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>
#include <treadle/core/model/abilities/keeps_state.h>
#include <treadle/engine/batch_preparation.h>
#include <treadle/engine/divided_source.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/distributed/thread_communicator.h>

#include "test/squared_error.h"

namespace treadle::engine {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::int64_t kRows = 6;

/// Batches of random numbers; every row of batch b has the number b.
BatchList numbered_batches(std::int64_t count) {
  std::vector<Batch> batches;
  for (std::int64_t number = 0; number < count; ++number) {
    const at::Generator generator = make_generator(static_cast<std::uint64_t>(number) + 1);
    Batch& batch = batches.emplace_back();
    batch.inputs = {at::randn({kRows, 3}, generator)};
    batch.targets = batch.original_targets = {at::randn({kRows, 2}, generator)};
    batch.rows = at::full({kRows}, number, at::kLong);
  }
  return BatchList(std::move(batches));
}

/// The inputs of a batch.
at::Tensor inputs_of_batch(std::int64_t number) {
  return at::randn({kRows, 3}, make_generator(static_cast<std::uint64_t>(number) + 1));
}

/// A linear layer, and what a test does beside it.
class Linear : public Model {
 public:
  using Beside = std::function<void(Inputs, Outputs&, ForwardContext&)>;

  explicit Linear(Beside beside = nullptr) : beside_(std::move(beside)) {
    const TaskRandom random(1);
    linear_ = register_module("linear", torch::nn::Linear(3, 2));
    dropout = register_module("dropout", torch::nn::Dropout(0.5));
  }
  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext& context) override {
    outputs[0] = dropout(linear_(inputs[0]));
    if (beside_)
      beside_(inputs, outputs, context);
  }

  torch::nn::Dropout dropout{nullptr};

 private:
  Beside beside_;
  torch::nn::Linear linear_{nullptr};
};

ModelSpec model_of(PortSpec input, OutputSpec output) {
  return {{std::move(input)}, {std::move(output)}};
}

TEST(EvaluationBatch, HoldsAQuarterOfAMebibyteOfInputs) {
  ModelSpec images = model_of({"image", {1, 28, 28}, {}}, {"logits", {10}});

  EXPECT_EQ(evaluation_batch(images, 1, 1024), (256 << 10) / (28 * 28 * 4));
  images.inputs.front().dtype = at::kDouble;
  EXPECT_EQ(evaluation_batch(images, 1, 1024), (256 << 10) / (28 * 28 * 8));
}

TEST(EvaluationBatch, IsBoundedByWhatIsTrainedWithAndWhatIsAskedFor) {
  const ModelSpec images = model_of({"image", {3, 224, 224}, {}}, {"logits", {10}});
  const ModelSpec columns = model_of({"features", {4}, {}}, {"logits", {10}});

  EXPECT_EQ(evaluation_batch(images, 32, 1024), 32);
  EXPECT_EQ(evaluation_batch(columns, 32, 1024), 1024);
  EXPECT_EQ(evaluation_batch(images, 32, 16), 16);
}

TEST(EvaluationBatch, HoldsNoMoreThanSixtyFourMebibytesOfLogits) {
  const ModelSpec text = model_of({"tokens", {128}}, {"logits", {128, 32768}});
  const ModelSpec longer = model_of({"tokens", {4096}}, {"logits", {4096, 32768}});

  EXPECT_EQ(evaluation_batch(text, 32, 1024), 4);
  EXPECT_EQ(evaluation_batch(longer, 32, 1024), 1);
}

/// What a visitor saw.
struct Seen {
  Evaluation totals;
  std::vector<std::int64_t> batches;
  std::vector<at::Tensor> predictions;
};

Seen evaluated(Model& model, std::int64_t batches, int workers, std::stop_token stop = {}) {
  const ObjectiveOf<SquaredError> loss;
  BatchList stream = numbered_batches(batches);
  Seen seen;
  ThreadBudget budget(workers);
  budget.run([&] {
    const std::thread::id caller = std::this_thread::get_id();
    seen.totals = evaluate({.model = &model, .objective = &loss}, stream, stop,
                           [&](const Predictions& predictions, const Batch& batch) {
                             EXPECT_EQ(std::this_thread::get_id(), caller);
                             seen.batches.push_back(batch.rows[0].item<std::int64_t>());
                             seen.predictions.push_back(predictions.at(0).values);
                           });
  });
  return seen;
}

/// Its batches are independent of each other, as it declares.
class Stateless final : public Linear, public KeepsState {
 public:
  using Linear::Linear;
  bool keeps_state() const override { return false; }
};

/// Numbered rows of `count` batches, of which a process reads its own.
class DividedBatches final : public DividedSource {
 public:
  explicit DividedBatches(std::int64_t count) : count_(count) {}

 private:
  std::optional<std::int64_t> do_batches_per_epoch() const override { return count_; }
  std::unique_ptr<BatchStream> do_epoch(std::int64_t, std::int64_t) override {
    return every(0, 0, 1);
  }
  std::unique_ptr<BatchStream> every(std::int64_t, std::int64_t first, std::int64_t step) override {
    BatchList all = numbered_batches(count_);
    std::vector<Batch> own;
    Batch batch;
    for (std::int64_t i = 0; all.next(batch); ++i) {
      if (i % step == first)
        own.push_back(batch);
    }
    return std::make_unique<BatchList>(std::move(own));
  }
  std::unique_ptr<StepStream> steps(std::int64_t, std::int64_t, ShardRange) override {
    return nullptr;
  }

  std::int64_t count_;
};

/// The same evaluation by several processes, here threads; the results of each.
std::vector<Seen> evaluated_by(std::int64_t processes, Linear& model, std::int64_t batches,
                               std::vector<std::string>* errors = nullptr) {
  std::vector<Seen> seen(static_cast<std::size_t>(processes));
  const ObjectiveOf<SquaredError> loss;
  const auto thrown = testing::at_ranks(processes, [&](Communicator& communicator) {
    ShardGroup group(communicator, static_cast<std::size_t>(processes));
    Seen& mine = seen.at(static_cast<std::size_t>(group.rank()));
    DividedBatches source(batches);
    EvaluationSetup setup{.model = &model, .objective = &loss, .group = &group};
    ThreadBudget budget(group.rank() == 0 ? 3 : 2);  // which may be another one on each machine
    budget.run([&] {
      const auto stream = rows_to_evaluate(source, setup);
      mine.totals =
          evaluate(setup, *stream, {}, [&](const Predictions& predictions, const Batch& batch) {
            mine.batches.push_back(batch.rows[0].item<std::int64_t>());
            mine.predictions.push_back(predictions.at(0).values);
          });
    });
  });
  if (errors != nullptr) {
    *errors = thrown;
  } else {
    EXPECT_THAT(thrown, Each(""));
  }
  return seen;
}

void expect_same(const Seen& one, const Seen& other) {
  EXPECT_EQ(one.totals.rows, other.totals.rows);
  EXPECT_EQ(one.totals.loss.is_undefined(), other.totals.loss.is_undefined());
  if (!one.totals.loss.is_undefined()) {
    EXPECT_EQ(one.totals.loss.value(), other.totals.loss.value());
  }
  EXPECT_EQ(one.batches, other.batches);
  ASSERT_EQ(one.predictions.size(), other.predictions.size());
  for (std::size_t i = 0; i < one.predictions.size(); ++i)
    EXPECT_TRUE(at::equal(one.predictions[i], other.predictions[i])) << i;
}

TEST(Evaluate, GivesProcessesThatDivideItTheResultsOfOne) {
  std::atomic<int> forwards{0};
  Stateless model([&](const Inputs&, Outputs&, ForwardContext&) { ++forwards; });
  model.eval();
  for (const std::int64_t batches : {0, 1, 3, 11, 30}) {
    const Seen alone = evaluated(model, batches, 1);
    for (const std::int64_t processes : {1, 2, 3, 4}) {
      SCOPED_TRACE(std::to_string(batches) + " batches, " + std::to_string(processes) +
                   " processes");
      forwards = 0;
      for (const Seen& seen : evaluated_by(processes, model, batches))
        expect_same(alone, seen);
      EXPECT_EQ(forwards, batches) << "each batch is evaluated once";
    }
  }
}

TEST(Evaluate, DividesNoModelThatMayKeepAState) {
  std::atomic<int> forwards{0};
  Linear model([&](const Inputs&, Outputs&, ForwardContext&) { ++forwards; });
  model.eval();
  const Seen alone = evaluated(model, 5, 1);
  forwards = 0;
  for (const Seen& seen : evaluated_by(3, model, 5))
    expect_same(alone, seen);
  EXPECT_EQ(forwards, 15);
}

TEST(Evaluate, ThrowsInAllProcessesWhatTheFirstBatchInOrderThrew) {
  Stateless model([](const Inputs& inputs, Outputs&, ForwardContext&) {
    for (const std::int64_t number : {4, 5, 7}) {
      if (at::equal(inputs[0], inputs_of_batch(number)))
        throw DataError("batch " + std::to_string(number) + " is wrong");
    }
  });
  model.eval();
  std::vector<std::string> errors;
  evaluated_by(3, model, 9, &errors);
  EXPECT_THAT(errors, Each(HasSubstr("batch 4 is wrong")));
}

/// The batch that a forward works on: the generators of numbered_batches() make no two alike.
std::int64_t number_of(const Inputs& inputs) {
  for (std::int64_t b = 0;; ++b) {
    const at::Generator generator = make_generator(static_cast<std::uint64_t>(b) + 1);
    if (at::equal(inputs[0], at::randn({kRows, 3}, generator)))
      return b;
  }
}

TEST(Evaluation, VisitsEachBatchInOrderWithWhateverNumberOfWorkers) {
  Linear model;
  const Seen alone = evaluated(model, 11, 1);
  EXPECT_THAT(alone.batches, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
  EXPECT_EQ(alone.totals.rows, 11 * kRows);
  EXPECT_EQ(alone.totals.rows, 11 * kRows);

  for (const int workers : {2, 3, 8}) {
    const Seen seen = evaluated(model, 11, workers);

    EXPECT_EQ(seen.batches, alone.batches);
    EXPECT_EQ(seen.totals.loss, alone.totals.loss);
    ASSERT_THAT(seen.predictions, SizeIs(11));
    for (std::size_t i = 0; i < seen.predictions.size(); ++i)
      EXPECT_TRUE(at::equal(seen.predictions[i], alone.predictions[i]));
  }
}

TEST(Evaluation, EvaluatesBatchesAtOnceAfterTheFirst) {
  std::barrier both(2);  // each waits for another: one at a time would never end
  std::atomic<int> forwards{0};
  Linear model([&](Inputs, Outputs&, ForwardContext&) {
    if (++forwards > 1)
      both.arrive_and_wait();
  });

  EXPECT_THAT(evaluated(model, 7, 2).batches, SizeIs(7));
}

TEST(Evaluation, EvaluatesNoMoreAtOnceThanItsMostWhateverNumberOfWorkers) {
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  Linear model([&](Inputs, Outputs&, ForwardContext&) {
    const int now = ++running;
    int seen = most.load();
    while (now > seen && !most.compare_exchange_weak(seen, now)) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --running;
  });

  evaluated(model, 40, 16);

  EXPECT_LE(most.load(), kMostBatchesAtOnce);
}

TEST(Evaluation, AsksAModelThatCarriesSomethingOneBatchAfterTheOther) {
  std::vector<std::int64_t> carried;
  Linear model([&](const Inputs& inputs, Outputs&, ForwardContext& context) {
    if (context.state().has_tensor("last"))
      carried.push_back(context.state().tensor("last").item<std::int64_t>());
    context.state().put("last", at::full({}, number_of(inputs), at::kLong));
  });

  evaluated(model, 6, 3);

  EXPECT_THAT(carried, ElementsAre(0, 1, 2, 3, 4));
}

/// Keeps something from the third batch on, and says so from the beginning.
class Late : public Linear, public KeepsState {
 public:
  using Linear::Linear;
};

TEST(Evaluation, AsksAModelThatSaysItKeepsSomethingOneBatchAfterTheOther) {
  std::vector<std::int64_t> carried;
  Late model([&](const Inputs& inputs, Outputs&, ForwardContext& context) {
    if (context.state().has_tensor("last"))
      carried.push_back(context.state().tensor("last").item<std::int64_t>());
    if (number_of(inputs) >= 2)
      context.state().put("last", at::full({}, number_of(inputs), at::kLong));
  });

  evaluated(model, 6, 3);

  EXPECT_THAT(carried, ElementsAre(2, 3, 4));
}

/// Batches whose longest rows differ: lengths 1 and 3, then 2, then 1.
BatchList padded_batches() {
  std::vector<Batch> batches;
  for (const at::Tensor& input :
       {at::tensor({1.F, 0.F, 0.F, 1.F, 2.F, 3.F}).view({2, 3, 1}),
        at::tensor({4.F, 5.F}).view({1, 2, 1}), at::tensor({6.F}).view({1, 1, 1})}) {
    Batch& batch = batches.emplace_back();
    batch.inputs = {input};
    batch.targets = batch.original_targets = {at::zeros_like(input)};
    batch.position_weights = {input.squeeze(2).ne(0).to(at::kFloat)};
    batch.rows = at::zeros({input.size(0)}, at::kLong);
  }
  return BatchList(std::move(batches));
}

/// Gives its input plus one, in padding as well.
class PlusOne : public Model {
 public:
  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext&) override {
    outputs[0] = inputs[0].add(1);
  }
};

/// The root of the mean square over the positions of all rows, which no sum over batches gives.
class RootMeanSquare : public Loss {
  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override {
    return {{"value", target.shape}};
  }
  bool do_is_additive() const override { return false; }
  LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                       const TargetBatch& target) const override {
    const at::Tensor squares = (outputs[0] - target.values()).square().squeeze(2);
    const at::Tensor& weights = target.weights();
    return {(squares * weights).sum().div(weights.sum()).sqrt(), at::ones({})};
  }
  Prediction do_prediction(const std::vector<at::Tensor>& outputs) const override {
    return {TargetKind::kNumbers, outputs[0]};
  }
};

TEST(Evaluation, PadsBatchesForALossOverAllRows) {
  PlusOne model;
  const ObjectiveOf<RootMeanSquare> loss({.name = "y", .shape = {kVaries, 1}});
  BatchList stream = padded_batches();

  const Evaluation totals = evaluate({.model = &model, .objective = &loss}, stream, {},
                                     [](const Predictions&, const Batch&) {});

  EXPECT_EQ(totals.rows, 4);
  EXPECT_NEAR(totals.loss, std::sqrt((4 + 4 + 9 + 16 + 25 + 36 + 49) / 7.0), 1e-6);
}

/// Doubles the first target, wherever the batch is.
class DoublesTarget : public Transform {
  void do_fit(const RowReader&, const RowList&) override {}
  DataSpec do_output_spec(const DataSpec& before) const override { return before; }
  void do_apply(Batch& batch, const ApplyContext&) const override {
    batch.targets[0] = batch.targets[0].mul(2);
  }
  bool do_works_on_device() const override { return true; }
  StateDict do_state() const override { return {}; }
  void do_load_state(const StateDict&) override {}
};

/// The weighted mean of products of outputs and targets, for numbers of one dtype alone.
class MeanProduct : public Loss {
  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override {
    return {{"value", target.shape}};
  }
  bool do_is_additive() const override { return false; }
  LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                       const TargetBatch& target) const override {
    const at::Tensor products = outputs[0].mul(target.values()).squeeze(1);
    EXPECT_EQ(target.values().scalar_type(), outputs[0].scalar_type());
    return {products.dot(target.weights()).div(target.weights().sum()), at::ones({})};
  }
  Prediction do_prediction(const std::vector<at::Tensor>& outputs) const override {
    return {TargetKind::kNumbers, outputs[0]};
  }
};

/// The mean of each picture.
class MeanOfPicture : public Model {
 public:
  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext&) override {
    outputs[0] = inputs[0].flatten(1).mean(1, /*keepdim=*/true);
  }
};

TEST(Evaluation, GivesALossOverAllRowsTheTargetsThatTheDevicePrepared) {
  DataSpec spec;
  spec.inputs = {{"image", {1, 2, 2}, {}, Role::kImage, at::kByte}};
  spec.targets = {{.name = "y", .shape = {1}}};
  std::vector<Batch> batches;
  for (const int first : {1, 3}) {
    Batch& batch = batches.emplace_back();
    batch.inputs = {at::stack(
        {at::full({1, 2, 2}, first, at::kByte), at::full({1, 2, 2}, first + 1, at::kByte)})};
    batch.targets = batch.original_targets = {
        at::tensor({1.0 * first, -2.0 * first}, at::kDouble).unsqueeze(1)};
    batch.weights = at::tensor({1.0, 3.0}, at::kDouble);
    batch.rows = at::tensor({first, first + 1}, at::kLong);
  }
  BatchList stream(std::move(batches));
  const DoublesTarget doubles;
  const BatchPreparation preparation(spec, {&doubles}, {.for_device = true});
  ASSERT_TRUE(preparation.has_device_part());
  MeanOfPicture model;
  const ObjectiveOf<MeanProduct> loss({.name = "y", .shape = {1}});
  std::vector<double> seen;

  const Evaluation totals =
      evaluate({.model = &model, .objective = &loss, .preparation = &preparation}, stream, {},
               [&](const Predictions&, const Batch& batch) {
                 seen.push_back(batch.original_targets[0].sum().item<double>());
               });

  // Products 1 * 2, 2 * -4, 3 * 6, 4 * -12 with weights 1, 3, 1, 3.
  EXPECT_NEAR(totals.loss, (2 - 24 + 18 - 144) / 8.0, 1e-6);
  EXPECT_THAT(seen, ElementsAre(-1, -3));
}

/// Loses a row of each batch.
class OneRowLess : public Model {
 public:
  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext&) override {
    outputs[0] = inputs[0].slice(0, 1);
  }
};

TEST(Evaluation, RefusesOutputsOfOtherRowsAlsoForALossOverAllRows) {
  OneRowLess model;
  const ObjectiveOf<RootMeanSquare> loss({.name = "y", .shape = {kVaries, 1}});
  BatchList stream = padded_batches();
  try {
    evaluate({.model = &model, .objective = &loss}, stream, {},
             [](const Predictions&, const Batch&) {});
    FAIL();
  } catch (const TrainingError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("1 rows for a batch of 2"));
  }
}

TEST(Evaluation, NoForwardRecordsGradientsOrTrains) {
  std::mutex mutex;
  bool any_records = false;
  bool any_trains = false;
  Linear* its = nullptr;
  Linear model([&](Inputs, Outputs& outputs, ForwardContext&) {
    const std::lock_guard lock(mutex);
    any_records = any_records || outputs[0].requires_grad();
    any_trains = any_trains || its->is_training() || its->dropout->is_training();
  });
  its = &model;
  model.train();
  model.dropout->eval();  // a layer that somebody froze

  evaluated(model, 9, 3);

  EXPECT_FALSE(any_records);
  EXPECT_FALSE(any_trains);
  EXPECT_TRUE(model.is_training());
  EXPECT_FALSE(model.dropout->is_training());
}

TEST(Evaluation, RethrowsWhatTheFirstInOrderThrewWhenAllHaveEnded) {
  std::atomic<int> running{0};
  Linear model([&](const Inputs& inputs, Outputs&, ForwardContext&) {
    ++running;
    const std::int64_t batch = number_of(inputs);
    // The earlier takes longer.
    if (batch == 4)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    --running;
    if (batch >= 4)
      throw DataError("batch " + std::to_string(batch));
  });

  try {
    evaluated(model, 12, 3);
    FAIL() << "nothing was thrown";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "batch 4");
  }
  EXPECT_EQ(running.load(), 0);
}

TEST(Evaluation, StopsBetweenBatches) {
  std::stop_source stop;
  std::atomic<int> forwards{0};
  Linear model([&](Inputs, Outputs&, ForwardContext&) {
    if (++forwards == 2)
      stop.request_stop();
  });

  EXPECT_THROW(evaluated(model, 100, 2, stop.get_token()), Interrupted);
  EXPECT_LE(forwards.load(), 3);
}

TEST(Evaluation, OfNothingIsNothing) {
  Linear model;

  const Seen seen = evaluated(model, 0, 2);

  EXPECT_EQ(seen.totals.rows, 0);
  EXPECT_EQ(seen.totals.loss, 0);
}

/// Keeps the numbers of the batches it was given.
class Listing : public MetricComputer {
 public:
  std::vector<std::int64_t> batches;

 private:
  void do_start(const TargetSpec&) override {}
  void do_reset() override { batches.clear(); }
  void do_update(const Prediction&, const TargetBatch& target) override {
    batches.push_back(target.batch().rows[0].item<std::int64_t>());
  }
  void do_merge(const MetricComputer&) override {}
  MetricResult do_compute() const override { return {}; }
  StateDict do_state() const override { return {}; }
  void do_load_state(const StateDict&) override {}
};

TEST(Evaluation, GivesMetricsTheBatchesInOrderAfterAReset) {
  Linear model;
  const ObjectiveOf<SquaredError> loss;
  Listing metric;
  metric.batches = {99};
  ThreadBudget budget(3);

  budget.run([&] {
    BatchList stream = numbered_batches(5);
    const TargetMetric metrics[] = {{&metric, 0, number_target("y", 2)}};
    evaluate_metrics({.model = &model, .objective = &loss}, stream, {}, metrics);
  });

  EXPECT_THAT(metric.batches, ElementsAre(0, 1, 2, 3, 4));
}

}  // namespace
}  // namespace treadle::engine
