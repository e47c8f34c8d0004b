#include <treadle/engine/thread_budget.h>

#include <atomic>
#include <limits>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/parallel_for.h>

namespace treadle::engine {
namespace {

bool flushes_denormals() {
  volatile double smallest = std::numeric_limits<double>::min();
  return smallest / 2 == 0;
}

TEST(ThreadBudget, FlushesDenormalsInEveryTaskAndNode) {
  ThreadBudget budget(4);
  std::atomic<int> kept{0};
  budget.run([&] {
    if (!flushes_denormals())
      ++kept;
    oneapi::tbb::parallel_for(0, 1000, [&](int) {
      if (!flushes_denormals())
        ++kept;
    });
    oneapi::tbb::flow::graph graph;
    oneapi::tbb::flow::function_node<int> node(graph, oneapi::tbb::flow::unlimited, [&](int) {
      if (!flushes_denormals())
        ++kept;
    });
    for (int i = 0; i < 100; ++i)
      node.try_put(i);
    graph.wait_for_all();
  });
  EXPECT_EQ(kept, 0);
}

TEST(ThreadBudget, GivesOperatorsOneThreadUnlessAskedForMore) {
  for (const int threads : {1, 3}) {
    ThreadBudget budget(2, threads);
    std::atomic<int> others{0};
    budget.run([&] {
      oneapi::tbb::parallel_for(0, 100, [&](int) {
        if (at::get_num_threads() != threads)
          ++others;
      });
    });
    EXPECT_EQ(others, 0) << threads;
  }
}

}  // namespace
}  // namespace treadle::engine
