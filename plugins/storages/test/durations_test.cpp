// What calls take, printed (README.md). Not run by default:
//   treadle-plugin-storages-tests --gtest_also_run_disabled_tests --gtest_filter='Durations.*'
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/testing/support/scratch_folder.h>

#include "made.h"
#include "test_server.h"

namespace treadle::storages {
namespace {

/// The median of `calls` calls, in milliseconds.
template <typename Call>
double median_of(std::int64_t calls, Call&& call) {
  std::vector<double> took;
  for (std::int64_t i = 0; i < calls; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    call(i);
    took.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  std::nth_element(took.begin(), took.begin() + calls / 2, took.end());
  return took[static_cast<std::size_t>(calls / 2)];
}

void print_durations(const std::string& name, StudyStorage& storage) {
  constexpr std::int64_t kCalls = 500;
  storage.create("study", 1);
  const double claim = median_of(
      kCalls, [&](std::int64_t job) { EXPECT_TRUE(storage.claim("study", job, "A", kLong)); });
  const double finish = median_of(kCalls, [&](std::int64_t job) {
    EXPECT_TRUE(storage.finish("study", job, "A", {{"loss", 1}}));
  });
  const double results =
      median_of(kCalls, [&](std::int64_t) { storage.results("study", kCalls - 5); });
  std::cout << name << ": claim " << claim << " ms, finish " << finish << " ms, the last 5 results "
            << results << " ms\n";
}

TEST(Durations, DISABLED_OfCalls) {
  const testing::ScratchFolder folder;
  print_durations("sqlite", *make("sqlite", folder.path() / "studies.db"));
  print_durations("journal", *make("journal", folder.path() / "studies.jsonl"));
  if (!TestServer::programs())
    return;
  const TestServer server(TestServer::Sync::kOn);
  print_durations("postgresql", *make("postgresql", server.location()));
}

}  // namespace
}  // namespace treadle::storages
