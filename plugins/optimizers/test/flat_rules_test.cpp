// Instruction sets and workers: neither changes a bit.
#include <atomic>
#include <functional>

#include <ATen/Context.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <hwy/highway.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/parallel_invoke.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>

#include <treadle/tensor/task_random.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/tensor_comparison.h>

#include "flat_rules.h"
#include "layers.h"
#include "runs.h"

namespace treadle::testing {
namespace {

namespace tbb = oneapi::tbb;

struct RuleCase {
  std::string name;
  std::string component;
  nlohmann::json parameters;
};

class EveryRule : public ::testing::TestWithParam<RuleCase> {
 protected:
  using Work = std::function<void()>;
  using Around = std::function<void(const Work&)>;

  static at::Tensor numbers(std::int64_t count, at::ScalarType dtype, std::uint64_t seed) {
    const TaskRandom random(seed);
    return at::randn({count}, dtype);
  }

  /// Parameters and slots after some steps, each update done by `around`.
  std::vector<at::Tensor> trained(const std::vector<std::int64_t>& sizes, at::ScalarType dtype,
                                  int steps, const Around& around) const {
    std::int64_t count = 0;
    for (const std::int64_t size : sizes)
      count += size;
    Layers layers(*optimizer_, sizes, numbers(count, dtype, 1));
    layers.module().parameters()[1].requires_grad_(false);
    for (int step = 0; step < steps; ++step) {
      layers.receive(numbers(count, dtype, 2 + static_cast<std::uint64_t>(step)));
      around([&] { layers.update(0.01); });
    }
    std::vector<at::Tensor> all = {layers.arena().parameters().clone()};
    for (std::size_t slot = 0; slot < layers.slots().count(); ++slot)
      all.push_back(layers.slots().tensor(slot).clone());
    return all;
  }

  std::unique_ptr<Optimizer> optimizer_ =
      PluginUnderTest(TREADLE_PLUGIN_FOLDER)
          .make<Optimizer>(GetParam().component, GetParam().parameters);
};

TEST_P(EveryRule, GivesTheSameBitsWithEveryInstructionSet) {
  const std::vector<std::int64_t> sizes = {1003, 17, 64, 1};
  const auto sets = optimizers::instruction_sets();
  ASSERT_FALSE(sets.empty());
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const auto best = trained(sizes, dtype, 5, [](const Work& work) { work(); });
    for (const std::int64_t set : sets) {
      hwy::SetSupportedTargetsForTest(set);
      ASSERT_EQ(optimizers::instruction_sets(), std::vector<std::int64_t>{set});
      const auto with_this = trained(sizes, dtype, 5, [](const Work& work) { work(); });
      hwy::SetSupportedTargetsForTest(0);

      EXPECT_TRUE(same_bits(with_this, best)) << hwy::TargetName(set) << " " << dtype;
    }
  }
}

TEST_P(EveryRule, GivesTheSameBitsForAnyNumberOfWorkers) {
  const tbb::global_control allowed(tbb::global_control::max_allowed_parallelism, 8);
  const auto check = [&](at::ScalarType dtype, const std::vector<std::int64_t>& sizes) {
    std::vector<at::Tensor> of_one;
    for (const int workers : {1, 2, 8}) {
      tbb::task_arena arena(workers);
      const auto now =
          trained(sizes, dtype, 3, [&](const Work& work) { arena.execute([&] { work(); }); });
      if (of_one.empty())
        of_one = now;
      else
        EXPECT_TRUE(same_bits(now, of_one)) << workers << " workers, " << dtype;
    }
  };
  check(at::kFloat, {3'000'001, 40, 70'000, 7});
  check(at::kDouble, {400'001, 40, 70'000, 7});  // sums show their order
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, EveryRule,
    ::testing::Values(
        RuleCase{"Sgd", "sgd", {{"weight_decay", 0.1}}},
        RuleCase{"Nesterov", "sgd", {{"momentum", 0.9}, {"nesterov", true}}},
        RuleCase{"AdamW", "adamw", {}}, RuleCase{"RmsProp", "rmsprop", {{"weight_decay", 0.1}}},
        RuleCase{"RollingRmsProp", "rmsprop", {{"momentum", 0.9}}},
        RuleCase{"CenteredRmsProp", "rmsprop", {{"centered", true}}},
        RuleCase{"RollingCenteredRmsProp", "rmsprop", {{"centered", true}, {"momentum", 0.9}}},
        RuleCase{"Adagrad", "adagrad", {}}, RuleCase{"Lion", "lion", {{"weight_decay", 0.1}}},
        RuleCase{"Lamb", "lamb", {}}),
    CaseName());

// --- among the tasks of others
// ---------------------------------------------------------------------

const optimizers::DescentRule<float> kDescent{1, 0, 0.5f};

// One task updates, over and over; the others are small, and there are always some that a thread
// which waits in the update could take.
TEST(FlatRules, TakeNoTaskOfOthersWhileTheyWait) {
  const tbb::global_control allowed(tbb::global_control::max_allowed_parallelism, 8);
  tbb::task_arena arena(8);
  constexpr std::int64_t kCount = 1 << 20;
  const at::Tensor gradients = at::full({kCount}, 1.0f);
  const at::Tensor parameters = at::full({kCount}, 2.0f);
  static thread_local bool updates = false;
  std::atomic<int> taken = 0;
  std::atomic<bool> done = false;
  const auto update = [&] {
    for (int i = 0; i < 300; ++i) {
      updates = true;
      optimizers::apply(kDescent, {parameters.data_ptr<float>(), gradients.data_ptr<float>()},
                        {0, kCount});
      updates = false;
    }
    done = true;
  };
  const auto offer = [&] {
    while (!done) {
      tbb::parallel_for(
          0, 256,
          [&](int) {
            if (updates)
              ++taken;
            for (int pause = 0; pause < 2000; ++pause)
              std::atomic_signal_fence(std::memory_order_seq_cst);  // which no compiler leaves out
          },
          tbb::simple_partitioner());
    }
  };

  arena.execute([&] { tbb::parallel_invoke(update, offer, offer, offer); });

  EXPECT_EQ(taken, 0);
}

// An arena remembers how the thread that made it treats denormals, and its tasks begin so. A thread
// budget sets it for each thread that comes in.
TEST(FlatRules, TreatDenormalsAsTheCallerDoesOnEveryWorker) {
  const tbb::global_control allowed(tbb::global_control::max_allowed_parallelism, 8);
  tbb::task_arena arena(8);
  constexpr std::int64_t kCount = 1 << 22;
  const at::Tensor gradients = at::full({kCount}, 3e-38f);
  const at::Tensor parameters = at::full({kCount}, 2e-38f);
  bool can_flush = false;

  arena.execute([&] {
    can_flush = at::globalContext().setFlushDenormal(true);
    optimizers::apply(kDescent, {parameters.data_ptr<float>(), gradients.data_ptr<float>()},
                      {0, kCount});
    at::globalContext().setFlushDenormal(false);
  });

  if (!can_flush)
    GTEST_SKIP() << "denormals cannot be flushed here";
  // 2e-38 - 1.5e-38 is denormal.
  EXPECT_EQ(parameters.count_nonzero().item<std::int64_t>(), 0);
}

// --- runs ----------------------------------------------------------------------------------------

Segment segment(std::int64_t offset, std::int64_t size, bool touched = true, bool frozen = false) {
  return {"", {size}, offset, size, frozen, touched};
}

using Runs = std::vector<std::tuple<std::int64_t, std::int64_t, double>>;

TEST(Runs, CoverActiveSegmentsThatFollowEachOtherWithTheirPadding) {
  const std::vector<Segment> segments = {
      segment(0, 16),  segment(16, 17), segment(48, 5, /*touched=*/false),
      segment(64, 1),  segment(80, 1),  segment(96, 40, true, /*frozen=*/true),
      segment(144, 32)};
  Runs runs;

  optimizers::for_each_run<float>(
      segments, [&](optimizers::Range run) { runs.emplace_back(run.begin, run.end, 0); });

  EXPECT_EQ(runs, (Runs{{0, 48, 0}, {64, 96, 0}, {144, 176, 0}}));
}

TEST(Runs, AreOfOneCount) {
  const std::vector<Segment> segments = {segment(0, 8), segment(8, 1), segment(16, 8),
                                         segment(24, 8, /*touched=*/false), segment(32, 9)};
  const std::vector<double> counts = {4, 4, 1, 7, 4};
  Runs runs;

  optimizers::for_each_run_of_one_count<double>(
      segments, counts,
      [&](optimizers::Range run, double count) { runs.emplace_back(run.begin, run.end, count); });

  EXPECT_EQ(runs, (Runs{{0, 16, 4}, {16, 24, 1}, {32, 48, 4}}));
}

TEST(Runs, AreNoneWhenNothingIsActive) {
  const std::vector<Segment> segments = {segment(0, 8, false), segment(8, 1, true, true)};

  optimizers::for_each_run<double>(segments, [](optimizers::Range) { ADD_FAILURE(); });
}

}  // namespace
}  // namespace treadle::testing
