#include <atomic>
#include <functional>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

#include "events/event_dispatcher.h"

namespace treadle::internal {
namespace {

using ::testing::ElementsAre;

/// Writes down what it hears, and does what it is told on a sentence.
class Listener final : public RunObserver {
 public:
  std::vector<std::string> heard;
  std::thread::id thread;
  std::function<void(const std::string&)> on_note;

 private:
  void do_step_completed(const FitId& fit, const StepProgress& progress) override {
    heard.push_back(fit.path() + " step " + std::to_string(progress.step));
  }
  void do_epoch_completed(const FitId& fit, const EpochSummary& summary) override {
    heard.push_back(fit.path() + " epoch " + std::to_string(summary.epoch));
  }
  void do_noted(const std::string& text) override {
    thread = std::this_thread::get_id();
    if (on_note)
      on_note(text);
    heard.push_back(text);
  }
};

EventDispatcher::Call note(const std::string& text) {
  return [text](RunObserver& o) { o.noted(text); };
}

EventDispatcher::Call epoch(const FitId& fit, std::int64_t number) {
  EpochSummary summary;
  summary.epoch = number;
  return [fit, summary](RunObserver& o) { o.epoch_completed(fit, summary); };
}

class EventDispatcherTest : public ::testing::Test {
 protected:
  /// `listener_` stands for one of the run's own files.
  EventDispatcherTest() {
    observers_.add_file(listener_);
    listener_.on_note = [this](const std::string& text) {
      if (text == "wait") {
        begun_.set_value();
        open_.get_future().wait();
      }
      if (text == "full")
        throw StorageError("run/history.csv: cannot be written: No space left on device");
    };
  }

  /// An observer is being notified and does not return before open().
  void block(EventDispatcher& dispatcher) {
    dispatcher.notify(note("wait"));
    begun_.get_future().wait();
  }
  void open() { open_.set_value(); }

  Listener listener_;
  RunObservers observers_;
  std::promise<void> begun_;
  std::promise<void> open_;
};

TEST_F(EventDispatcherTest, TellsInOrderFromAThreadOfItsOwn) {
  EventDispatcher dispatcher(observers_);

  for (const char* text : {"a", "b", "c"})
    dispatcher.notify(note(text));
  dispatcher.drain();

  EXPECT_THAT(listener_.heard, ElementsAre("a", "b", "c"));
  EXPECT_NE(listener_.thread, std::this_thread::get_id());
}

TEST_F(EventDispatcherTest, OfTheStepsOnlyTheNewestIsToldAndBeforeTheEndOfTheirEpoch) {
  EventDispatcher dispatcher(observers_);
  const FitId fit{"fold-1", 0, 2};
  block(dispatcher);
  {
    EventDispatcher::Training training(dispatcher, fit);
    for (int step = 1; step <= 3; ++step)
      training.step_completed({1, 2, step, 6});
    training.notify(epoch(fit, 1));
    for (int step = 4; step <= 6; ++step)
      training.step_completed({2, 2, step, 6});
    training.notify(epoch(fit, 2));
    open();
    dispatcher.drain();
  }

  EXPECT_THAT(listener_.heard, ElementsAre("wait", "fold-1 step 3", "fold-1 epoch 1",
                                           "fold-1 step 6", "fold-1 epoch 2"));
}

TEST_F(EventDispatcherTest, AStepIsToldThoughNothingElseHappens) {
  EventDispatcher dispatcher(observers_);
  std::promise<void> told;
  class Waiting final : public RunObserver {
   public:
    explicit Waiting(std::promise<void>& told) : told_(told) {}

   private:
    void do_step_completed(const FitId&, const StepProgress&) override { told_.set_value(); }
    std::promise<void>& told_;
  } waiting(told);
  observers_.add(waiting);
  EventDispatcher::Training training(dispatcher, FitId{});

  training.step_completed({1, 1, 1, 100});

  EXPECT_EQ(told.get_future().wait_for(std::chrono::minutes(1)), std::future_status::ready);
}

TEST_F(EventDispatcherTest, TheLastStepOfATrainingThatGoesIsToldToo) {
  EventDispatcher dispatcher(observers_);
  block(dispatcher);
  {
    EventDispatcher::Training training(dispatcher, FitId{"final", 0, 1});
    training.step_completed({1, 1, 8, 100});
  }
  open();
  dispatcher.settle();

  EXPECT_THAT(listener_.heard, ElementsAre("wait", "final step 8"));
}

TEST_F(EventDispatcherTest, WhoTellsFasterThanTheyListenWaits) {
  constexpr std::size_t kCapacity = 3;
  constexpr int kCalls = 20;
  EventDispatcher dispatcher(observers_, kCapacity);
  block(dispatcher);
  std::atomic<int> handed_in{0};

  std::thread fast([&] {
    for (int i = 0; i < kCalls; ++i) {
      dispatcher.notify(note(std::to_string(i)));
      ++handed_in;
    }
  });
  while (handed_in < static_cast<int>(kCapacity))
    std::this_thread::yield();
  // It could hand in no more if it had all the time in the world; it has a little.
  for (int i = 0; i < 1000; ++i)
    std::this_thread::yield();
  EXPECT_EQ(handed_in, static_cast<int>(kCapacity));
  open();
  fast.join();
  dispatcher.drain();

  EXPECT_EQ(listener_.heard.size(), 1u + kCalls);
}

TEST_F(EventDispatcherTest, AMarkStandsForWhatWasToldBeforeIt) {
  EventDispatcher dispatcher(observers_);
  dispatcher.notify(note("before"));
  const std::uint64_t mark = dispatcher.mark();

  block(dispatcher);
  dispatcher.wait_for(mark);  // and not for "wait", which nobody lets go yet

  open();
  dispatcher.drain();
  EXPECT_THAT(listener_.heard, ElementsAre("before", "wait"));
}

TEST_F(EventDispatcherTest, WhatEndsTheRunIsThrownAtEverybodyAndNothingIsToldAfterIt) {
  EventDispatcher dispatcher(observers_);
  EventDispatcher::Training training(dispatcher, FitId{});

  dispatcher.notify(note("good"));
  dispatcher.notify(note("full"));
  EXPECT_THROW(dispatcher.drain(), StorageError);

  EXPECT_THROW(dispatcher.notify(note("later")), StorageError);
  EXPECT_THROW(training.step_completed({1, 1, 1, 1}), StorageError);
  EXPECT_THROW(training.notify(note("later")), StorageError);
  EXPECT_THROW(dispatcher.wait_for(dispatcher.mark()), StorageError);
  dispatcher.settle();
  EXPECT_THAT(listener_.heard, ElementsAre("good"));
}

TEST_F(EventDispatcherTest, AFailureLetsGoOfThoseWhoWaitForRoom) {
  EventDispatcher dispatcher(observers_, 2);
  block(dispatcher);
  dispatcher.notify(note("full"));

  std::promise<bool> failed;
  std::thread waiting([&] {
    try {
      for (;;)
        dispatcher.notify(note("more"));
    } catch (const StorageError&) {
      failed.set_value(true);
    }
  });
  open();

  EXPECT_TRUE(failed.get_future().get());
  waiting.join();
}

TEST_F(EventDispatcherTest, AnythingThatIsThrownComesOutWhereItWasTold) {
  EventDispatcher dispatcher(observers_);
  listener_.on_note = [](const std::string&) { throw 42; };

  dispatcher.notify(note("odd"));

  EXPECT_THROW(dispatcher.drain(), int);
}

TEST_F(EventDispatcherTest, AnObserverThatThrowsHearsNoMoreAndTheOthersDo) {
  const std::string failed = "an observer failed and is no longer notified: ";
  const std::vector<std::pair<std::function<void(const std::string&)>, std::string>> failures{
      {[](const std::string&) { throw std::runtime_error("lost my file"); }, "lost my file"},
      {[](const std::string&) { throw StorageError("run.csv: is locked"); }, "run.csv: is locked"},
      {[](const std::string&) { throw 42; }, "it threw something that is not a std::exception"}};
  for (const auto& [fails, reason] : failures) {
    RunObservers observers;
    Listener failing;
    Listener other;
    observers.add(failing);
    observers.add(other);
    EventDispatcher dispatcher(observers);
    failing.on_note = fails;

    dispatcher.notify(note("one"));
    dispatcher.notify(note("two"));
    dispatcher.drain();

    EXPECT_THAT(failing.heard, ElementsAre());
    EXPECT_THAT(other.heard, ElementsAre(failed + reason, "one", "two"));
  }
}

// It is in the middle of being told of the first one's failure.
TEST_F(EventDispatcherTest, AnObserverThatThrowsAtTheFailureOfAnotherIsDroppedAsWell) {
  Listener first;
  Listener second;
  observers_.add(first);
  observers_.add(second);
  EventDispatcher dispatcher(observers_);
  first.on_note = [](const std::string&) { throw std::runtime_error("no room"); };
  second.on_note = [](const std::string&) { throw std::runtime_error("no line"); };

  dispatcher.notify(note("one"));
  dispatcher.notify(note("two"));
  dispatcher.drain();

  EXPECT_THAT(listener_.heard,
              ElementsAre("one", "an observer failed and is no longer notified: no room",
                          "an observer failed and is no longer notified: no line", "two"));
}

TEST_F(EventDispatcherTest, TellsWhatIsLeftWhenItGoes) {
  // So many that the listener cannot have heard them all by the time the dispatcher goes.
  constexpr std::size_t kNotes = 500;
  {
    EventDispatcher dispatcher(observers_);
    block(dispatcher);
    for (std::size_t i = 0; i < kNotes; ++i)
      dispatcher.notify(note("last"));
    open();
  }
  EXPECT_EQ(listener_.heard.size(), kNotes + 1);
}

TEST_F(EventDispatcherTest, KeepsTheOrderOfTrainingsThatRunAtOnce) {
  constexpr int kTrainings = 4;
  static constexpr int kEpochs = 200;
  {
    EventDispatcher dispatcher(observers_, 8);
    std::vector<std::thread> threads;
    for (int i = 0; i < kTrainings; ++i) {
      threads.emplace_back([&dispatcher, i] {
        const FitId fit{"fold-" + std::to_string(i + 1), i, kTrainings};
        EventDispatcher::Training training(dispatcher, fit);
        for (int number = 1; number <= kEpochs; ++number) {
          training.step_completed({number, kEpochs, 2 * number - 1, 2 * kEpochs});
          training.step_completed({number, kEpochs, 2 * number, 2 * kEpochs});
          training.notify(epoch(fit, number));
        }
      });
    }
    for (std::thread& thread : threads)
      thread.join();
    dispatcher.drain();
  }

  for (int i = 1; i <= kTrainings; ++i) {
    const std::string name = "fold-" + std::to_string(i);
    int step = 0;
    int ended = 0;
    for (const std::string& line : listener_.heard) {
      if (line.rfind(name + " step ", 0) == 0) {
        const int next = std::stoi(line.substr(name.size() + 6));
        EXPECT_GT(next, step) << line;
        EXPECT_GT(next, 2 * ended) << line;
        step = next;
      } else if (line.rfind(name + " epoch ", 0) == 0) {
        EXPECT_EQ(line, name + " epoch " + std::to_string(++ended));
        EXPECT_EQ(step, 2 * ended) << "the last step of an epoch comes before its end";
      }
    }
    EXPECT_EQ(ended, kEpochs);
  }
}

}  // namespace
}  // namespace treadle::internal
