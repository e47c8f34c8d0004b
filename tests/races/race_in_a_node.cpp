// A race, on purpose. The thread sanitizer must report it: were it silent about this one, its
// silence about the rest of the tests would mean nothing.
#include <atomic>

#include <tbb/flow_graph.h>
#include <tbb/task_arena.h>

int main() {
  int unprotected = 0;
  std::atomic<int> inside{0};
  tbb::task_arena two(2);
  two.execute([&] {
    tbb::flow::graph graph;
    tbb::flow::function_node<int> node(graph, tbb::flow::unlimited, [&](int) {
      // Both bodies run at once. Relaxed: waiting for each other must not order them.
      inside.fetch_add(1, std::memory_order_relaxed);
      while (inside.load(std::memory_order_relaxed) < 2) {
      }
      ++unprotected;
    });
    node.try_put(0);
    node.try_put(1);
    graph.wait_for_all();
  });
  return unprotected == 0 ? 1 : 0;
}
