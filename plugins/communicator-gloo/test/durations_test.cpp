// Durations of exchanges, printed (README.md). Not run by default:
//   treadle-plugin-communicator-gloo-tests --gtest_also_run_disabled_tests
//   --gtest_filter='Durations.*'
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <treadle/testing/support/forked_process.h>
#include <treadle/testing/support/scratch_folder.h>

#include "made.h"

namespace treadle::gloo_group {
namespace {

using testing::ForkedProcess;
using testing::ScratchFolder;

/// Prints the median and the least duration of a call, in milliseconds, as rank 0 has them.
void print_durations(const std::string& name, std::int64_t rank, std::size_t bytes,
                     const std::function<void()>& call) {
  const int calls = bytes > 10'000'000 ? 9 : bytes > 1'000'000 ? 60 : 400;
  for (int i = 0; i < 3; ++i)
    call();
  std::vector<double> took;
  for (int i = 0; i < calls; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    took.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  std::sort(took.begin(), took.end());
  if (rank == 0)
    std::printf("%-28s %9zu bytes: median %.3f ms, least %.3f ms\n", name.c_str(), bytes,
                took[took.size() / 2], took[0]);
  std::fflush(stdout);
}

void measure_pairs(std::int64_t rank, std::int64_t ranks, const std::filesystem::path& folder,
                   std::size_t bytes) {
  const auto group = make();
  group->connect({.rank = rank, .world_size = ranks, .folder = folder});
  const std::size_t part = bytes / static_cast<std::size_t>(ranks);
  std::vector<std::byte> mine(part);
  std::vector<std::byte> all(part * static_cast<std::size_t>(ranks));
  std::vector<std::byte> received(all.size());
  const std::vector<std::size_t> sizes(static_cast<std::size_t>(ranks), part);
  const std::string of = " of " + std::to_string(ranks);
  print_durations("pairs, gather" + of, rank, bytes, [&] { group->all_gather(mine, all); });
  print_durations("pairs, all to all" + of, rank, bytes,
                  [&] { group->all_to_all(all, sizes, received, sizes); });
}

void measure_collectives(std::int64_t rank, std::int64_t ranks, const std::filesystem::path& folder,
                         std::size_t bytes) {
  const auto options = c10d::ProcessGroupGloo::Options::create();
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  const auto store = c10::make_intrusive<c10d::FileStore>((folder / "store").string(), -1);
  c10d::ProcessGroupGloo group(store, static_cast<int>(rank), static_cast<int>(ranks), options);
  const auto part = static_cast<std::int64_t>(bytes) / ranks;
  std::vector<at::Tensor> mine{at::empty({part}, at::kByte)};
  std::vector<std::vector<at::Tensor>> gathered(1);
  for (std::int64_t i = 0; i < ranks; ++i)
    gathered[0].push_back(at::empty({part}, at::kByte));
  at::Tensor all = at::empty({part * ranks}, at::kByte);
  at::Tensor received = at::empty({part * ranks}, at::kByte);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(ranks), part);
  const std::string of = " of " + std::to_string(ranks);
  print_durations("collective, gather" + of, rank, bytes,
                  [&] { group.allgather(gathered, mine)->wait(); });
  print_durations("collective, all to all" + of, rank, bytes,
                  [&] { group.alltoall_base(received, all, counts, counts)->wait(); });
}

TEST(Durations, DISABLED_OfExchanges) {
  std::fflush(stdout);  // before it is copied
  for (const std::int64_t ranks : {2, 4}) {
    for (const std::size_t bytes : {6'000, 2'000'000, 40'000'000}) {
      for (const auto& measure : {measure_pairs, measure_collectives}) {
        const ScratchFolder folder;
        std::vector<ForkedProcess> processes;
        for (std::int64_t rank = 0; rank < ranks; ++rank)
          processes.emplace_back([&, rank] { measure(rank, ranks, folder.path(), bytes); });
        for (ForkedProcess& process : processes)
          EXPECT_EQ(process.join(), "");
      }
    }
  }
}

}  // namespace
}  // namespace treadle::gloo_group
