// What a process that lives long must not do: grow.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <fstream>

#include "workspace.h"

namespace treadle {
namespace {

using testing::Workspace;
namespace fs = std::filesystem;

/// Bytes of this process in memory.
double resident() {
  std::ifstream file("/proc/self/statm");
  double pages = 0;
  file >> pages >> pages;
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE));
}

class FlatMemory : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer keeps memory of its own";
#endif
    // Else each new thread takes one of 16, by what else the machine does, and each of them keeps
    // what is free.
    mallopt(M_ARENA_MAX, 1);
  }

  /// A run waits for the disk two dozen times, which says nothing of memory.
  static fs::path in_memory() {
    const fs::path folder = "/dev/shm";
    return access(folder.c_str(), W_OK) == 0 ? folder : fs::temp_directory_path();
  }

  static nlohmann::json tiny(std::int64_t epochs) {
    return {{"treadle", 1},
            {"name", "tiny"},
            {"seed", 5},
            {"data", {{"use", "moons"}, {"rows", 24}}},
            {"transforms", {{{"use", "standardize"}}}},
            {"model", {{"use", "mlp"}, {"hidden", {2}}}},
            {"training",
             {{"use", "standard"},
              {"epochs", epochs},
              {"batch_size", 32},
              {"checkpoint", {{"every", "50ep"}}}}},
            {"validation", {{"use", "hold_out"}}},
            {"resources", {{"workers", 2}}}};
  }
};

TEST_F(FlatMemory, After1000RunsInOneProcess) {
  constexpr int kWarmUp = 200;
  constexpr int kRuns = 1000;
  // What a run leaks is leaked 800 times: this bound finds 2.5 kB, a tenth of what one run's
  // components take.
  constexpr double kBound = 2e6;
  const Runtime runtime;
  const ResolvedWorkflow workflow = runtime.resolve(tiny(2));
  const Workspace workspace(in_memory());
  double warm = 0;

  for (int run = 0; run < kRuns; ++run) {
    if (run == kWarmUp)
      warm = resident();
    fs::remove_all(run_workflow(runtime, workflow, workspace.options()).folder);
  }

  RecordProperty("bytes_grown", std::to_string(resident() - warm));
  EXPECT_LT(resident() - warm, kBound);
}

/// Looks at the memory after two of a training's epochs.
class Weigher final : public RunObserver {
 public:
  Weigher(std::int64_t from, std::int64_t to) : from_(from), to_(to) {}
  double grown() const { return end_ - start_; }

 private:
  void do_epoch_completed(const FitId&, const EpochSummary& summary) override {
    if (summary.epoch == from_)
      start_ = resident();
    if (summary.epoch == to_)
      end_ = resident();
  }
  const std::int64_t from_;
  const std::int64_t to_;
  double start_ = 0;
  double end_ = 1e18;
};

TEST_F(FlatMemory, After10000Epochs) {
  constexpr std::int64_t kWarmUp = 1000;
  constexpr std::int64_t kEpochs = 10'000;
  // The history is kept for the report. A row with its metrics and their names takes 500 bytes, and
  // the list of rows grows by doubling, so how much is seen depends on where the doubling stands
  // and on what the allocator keeps of the smaller lists.
  constexpr double kRow = 1200;
  const Runtime runtime;
  const Workspace workspace;
  Weigher weigher(kWarmUp, kEpochs);
  RunOptions options = workspace.options();
  options.observers = {&weigher};

  run_workflow(runtime, runtime.resolve(tiny(kEpochs)), options);

  RecordProperty("bytes_grown", std::to_string(weigher.grown()));
  EXPECT_LT(weigher.grown(), kRow * static_cast<double>(kEpochs - kWarmUp));
}

}  // namespace
}  // namespace treadle
