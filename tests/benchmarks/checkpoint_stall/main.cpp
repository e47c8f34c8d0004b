// How long a training stands still for a checkpoint, beside one copy of the same bytes and beside
// writing it at once; and what queueing a step costs. Rounds in turn; prints medians.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/rand.h>

#include <treadle/host/run/checkpoint_store.h>

#include "events/event_dispatcher.h"
#include "store/state_saver.h"

namespace {

using namespace treadle;
namespace fs = std::filesystem;

double milliseconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Weights and the two moments of Adam.
StateDict state_of(const std::vector<at::Tensor>& tensors) {
  StateDict model;
  model.put("weight", tensors[0]);
  StateDict optimizer;
  optimizer.put("first", tensors[1]);
  optimizer.put("second", tensors[2]);
  StateDict state;
  state.put("model", std::move(model));
  state.put("optimizer", std::move(optimizer));
  return state;
}

void measure(std::int64_t parameters, int rounds, const fs::path& scratch) {
  std::vector<at::Tensor> tensors;
  std::vector<at::Tensor> copies;
  for (int i = 0; i < 3; ++i) {
    tensors.push_back(at::rand({parameters}));
    copies.push_back(at::rand({parameters}));
  }
  const StateDict state = state_of(tensors);
  internal::BackgroundWriter writer;
  internal::StateSaver saver(writer);
  CheckpointStore background(scratch / "background");
  CheckpointStore at_once(scratch / "at-once");
  std::vector<double> copied;
  std::vector<double> saved;
  std::vector<double> written;
  for (int round = -1; round < rounds; ++round) {
    const double copy = milliseconds([&] {
      for (int i = 0; i < 3; ++i)
        std::memcpy(copies[i].data_ptr(), tensors[i].data_ptr(), tensors[i].nbytes());
    });
    const double save = milliseconds([&] {
      saver.save(state, [&](const StateDict& kept) { background.save(kept, {1, round + 2}, 2); });
    });
    saver.finish();
    const double write = milliseconds([&] { at_once.save(state, {1, round + 2}, 2); });
    if (round < 0)
      continue;  // the first copy allocates
    copied.push_back(copy);
    saved.push_back(save);
    written.push_back(write);
  }
  std::printf("%10ld  %11.3f  %10.3f  %16.3f\n", static_cast<long>(parameters), median(copied),
              median(saved), median(written));
}

void measure_steps() {
  constexpr int kSteps = 1'000'000;
  internal::RunObservers observers;
  internal::EventDispatcher dispatcher(observers);
  internal::EventDispatcher::Training training(dispatcher, FitId{});
  std::vector<double> nanoseconds;
  for (int round = 0; round < 9; ++round) {
    nanoseconds.push_back(milliseconds([&] {
                            for (int step = 1; step <= kSteps; ++step)
                              training.step_completed({1, 1, step, kSteps});
                          }) *
                          1e6 / kSteps);
  }
  std::printf("queueing a step: %.1f ns\n", median(nanoseconds));
}

}  // namespace

int main(int argument_count, char** arguments) {
  const int rounds = argument_count > 1 ? std::atoi(arguments[1]) : 9;
  const fs::path scratch =
      fs::temp_directory_path() / ("treadle-checkpoint-stall-" + std::to_string(std::rand()));
  std::printf(
      "milliseconds, Adam's state\nparameters  memcpy of it  background  written at once\n");
  for (const std::int64_t parameters : {6'337, 100'000, 1'000'000, 10'000'000})
    measure(parameters, rounds, scratch);
  measure_steps();
  fs::remove_all(scratch);
}
