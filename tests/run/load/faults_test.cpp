// Something goes wrong within a run, at each place where a plugin is called: every node of every
// graph. One clear error, and the process can start another run.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>

#include <treadle/base/error.h>
#include <treadle/core/training/learning_rate_schedule.h>

#include "faulty/fault_hook.h"
#include "workspace.h"

namespace treadle {
namespace {

using ::testing::AllOf;
using testing::bits_of;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::Workspace;
namespace fs = std::filesystem;

nlohmann::json faulty_moons() {
  nlohmann::json document = testing::moons(3);
  document["data"]["rows"] = 96;
  document["training"].update({{"epochs", 3}, {"gradients", "backprop"}});
  document["loss"] = "cross_entropy";
  document["metrics"] = {"accuracy"};
  document["resources"]["shards"] = 2;
  for (const char* slot : {"data", "model", "loss", "optimizer", "schedule", "validation"})
    document[slot] = {{"use", std::string("faulty_") + slot}, {"inner", document[slot]}};
  document["schedule"]["inner"].erase("warmup");
  document["training"]["gradients"] = {{"use", "faulty_gradients"}, {"inner", "backprop"}};
  document["transforms"] = {{{"use", "faulty_transform"}, {"inner", "standardize"}}};
  document["metrics"] = {{{"use", "faulty_metric"}, {"inner", "accuracy"}}};
  document["observers"] = {"faulty_observer"};
  return document;
}

class Faults : public ::testing::Test {
 protected:
  Faults()
      : runtime_(options()),
        schedule_(runtime_.registry().make<LearningRateSchedule>(
            "faulty_schedule", Config(nlohmann::json{{"inner", {{"use", "constant"}}}}))),
        hook_(*schedule_->ask<FaultHook>()) {}
  ~Faults() override { hook_.at = nullptr; }

  static RuntimeOptions options() {
    RuntimeOptions options;
    options.plugin_dirs = {testing::test_plugins()};
    return options;
  }

  std::string run() {
    const Workspace workspace;
    return bits_of(
        run_workflow(runtime_, runtime_.resolve(faulty_moons()), workspace.options()).folder);
  }

  /// How often a run comes by each place.
  std::map<std::string, int> count_calls() {
    std::map<std::string, int> calls;
    std::mutex mutex;
    hook_.at = [&](std::string_view place) {
      const std::lock_guard lock(mutex);
      ++calls[std::string(place)];
    };
    run();
    hook_.at = nullptr;
    return calls;
  }

  /// Throws at call number `call` of `place`, and at every one after it.
  template <typename Throw>
  void fail_from(std::string_view place, int call, Throw&& fault) {
    auto left = std::make_shared<std::atomic<int>>(call);
    hook_.at = [left, place = std::string(place), fault](std::string_view here) {
      if (here == place && --*left <= 0)
        fault();
    };
  }

  static std::ptrdiff_t entries(const char* folder) {
    return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
  }

  Runtime runtime_;
  std::unique_ptr<LearningRateSchedule> schedule_;
  FaultHook& hook_;
};

TEST_F(Faults, AtAnyPlaceAreOneClearErrorAndTheNextRunIsLikeTheFirst) {
  const std::string expected = run();
  const std::map<std::string, int> calls = count_calls();
  EXPECT_GE(calls.size(), 29U) << "a run no longer comes by some of the places";
  const std::ptrdiff_t threads = entries("/proc/self/task");
  const std::ptrdiff_t files = entries("/proc/self/fd");
  for (const auto& [place, count] : calls) {
    if (place.starts_with("observer."))
      continue;
    // Most batches are prepared ahead, and the last ones for nobody.
    const bool ahead = place == "data.gather" || place == "transform.apply";
    for (const int call : {1, ahead ? 5 : (count + 1) / 2}) {
      SCOPED_TRACE(place + ", call " + std::to_string(call));
      fail_from(place, call, [] { throw std::runtime_error("the cable was pulled"); });
      try {
        run();
        ADD_FAILURE() << "the run did not notice";
      } catch (const PluginError& error) {
        // Such as: optimizer "faulty_optimizer" of plugin org.treadle.test.faulty 1.0.0 failed in
        // update(): …
        const std::size_t dot = place.find('.');
        EXPECT_THAT(error.what(), AllOf(HasSubstr("\"faulty_" + place.substr(0, dot) +
                                                  "\" of plugin "
                                                  "org.treadle.test.faulty 1.0.0 failed in "),
                                        HasSubstr("(): the cable was pulled")));
      }
      hook_.at = nullptr;
      EXPECT_EQ(run(), expected);
    }
  }
  EXPECT_LE(entries("/proc/self/task"), threads);
  EXPECT_LE(entries("/proc/self/fd"), files);
}

TEST_F(Faults, BeforeTheFirstStepLeaveNoFolder) {
  for (const char* place : {"observer.make", "data.open", "model.forward"}) {
    SCOPED_TRACE(place);
    const Workspace workspace;
    fail_from(place, 1, [] { throw std::runtime_error("the cable was pulled"); });
    EXPECT_THROW(run_workflow(runtime_, runtime_.resolve(faulty_moons()), workspace.options()),
                 PluginError);
    EXPECT_EQ(entries(workspace.options().output.c_str()), 0);
  }
}

TEST_F(Faults, OfWhateverKindComeOutOfWorkersAsWhatTheyAre) {
  for (const char* place : {"data.gather", "transform.apply", "model.forward", "model.backward",
                            "loss.forward", "gradients.add_gradients", "metric.update"}) {
    SCOPED_TRACE(place);
    fail_from(place, 3, [] { throw std::bad_alloc(); });
    EXPECT_THROW(run(), std::bad_alloc);
    fail_from(place, 3, [] { throw TrainingError("row 5 is not to be trained with"); });
    EXPECT_THROW(run(), TrainingError);
    fail_from(place, 3, [] { throw 5; });  // NOLINT(hicpp-exception-baseclass): what strangers do
    EXPECT_THROW(run(), PluginError);
  }
}

TEST_F(Faults, OfATrainingNameTrainingEpochAndStep) {
  // A single training: of several, the one that meets the fault may be before its first step.
  nlohmann::json document = faulty_moons();
  document["validation"]["inner"] = "hold_out";
  for (const char* place : {"model.forward", "gradients.add_gradients", "loss.forward"}) {
    SCOPED_TRACE(place);
    fail_from(place, 20, [] { throw TrainingError("the gradient's norm is 1e9"); });
    const Workspace workspace;
    try {
      run_workflow(runtime_, runtime_.resolve(document), workspace.options());
      ADD_FAILURE() << "the run did not notice";
    } catch (const TrainingError& error) {
      EXPECT_THAT(error.what(), AllOf(StartsWith("the gradient's norm is 1e9; in training "),
                                      HasSubstr("step "), HasSubstr("epoch ")));
    }
    hook_.at = nullptr;
  }
}

TEST_F(Faults, OfAnObserverDoNotEndTheRun) {
  const std::string expected = run();
  for (const char* place :
       {"observer.run_started", "observer.fit_started", "observer.epoch_completed",
        "observer.checkpoint_saved", "observer.fit_completed", "observer.run_completed"}) {
    SCOPED_TRACE(place);
    int calls = 0;
    hook_.at = [&](std::string_view here) {
      if (here != place)
        return;
      ++calls;
      throw std::runtime_error("the cable was pulled");
    };
    EXPECT_EQ(run(), expected);
    EXPECT_EQ(calls, 1) << "it was called again";
  }
}

// A plugin that computes in parallel under a lock of its own would wait for itself if its thread
// called it again meanwhile: from the batch of another fold, say.
TEST_F(Faults, NoPluginIsEnteredAgainWhileItWaitsForParallelWorkOfItsOwn) {
  static thread_local std::string inside;
  std::mutex mutex;
  std::set<std::string> entered_again;
  std::set<std::string> waited;
  hook_.at = [&](std::string_view place) {
    if (!inside.empty()) {
      const std::lock_guard lock(mutex);
      entered_again.insert(std::string(place) + " within " + inside);
      return;
    }
    inside = place;
    std::atomic<int> others{0};
    const std::thread::id here = std::this_thread::get_id();
    oneapi::tbb::parallel_for(
        0, 16,
        [&](int) {
          std::this_thread::sleep_for(std::chrono::microseconds(20));
          others += std::this_thread::get_id() == here ? 0 : 1;
        },
        oneapi::tbb::simple_partitioner());
    inside.clear();
    const std::lock_guard lock(mutex);
    if (others > 0)
      waited.insert(std::string(place));
  };
  nlohmann::json document = faulty_moons();
  document["resources"]["workers"] = 4;
  document["validation"]["inner"] = {{"use", "k_fold"}, {"folds", 4}};
  const Workspace workspace;

  run_workflow(runtime_, runtime_.resolve(document), workspace.options());

  EXPECT_THAT(entered_again, ::testing::IsEmpty());
  EXPECT_GT(waited.size(), 10U) << "or nothing was tried";
}

}  // namespace
}  // namespace treadle
