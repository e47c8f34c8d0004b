#include <treadle/engine/trials.h>

#include <atomic>
#include <exception>
#include <vector>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/task_arena.h>

#include <treadle/base/error.h>

namespace treadle::engine {
namespace flow = oneapi::tbb::flow;

void run_trials(std::size_t count, std::size_t at_once,
                const std::function<void(std::size_t)>& trial) {
  TREADLE_EXPECTS(at_once >= 1, "at least one trial runs at a time");
  std::vector<std::exception_ptr> failures(count);
  std::atomic<bool> failed{false};
  flow::graph graph;
  flow::function_node<std::size_t> run(graph, at_once, [&](std::size_t index) {
    if (failed.load()) return;
    // Waiting for a batch must not pick up another trial: it would train inside this one, with this
    // thread's settings.
    oneapi::tbb::this_task_arena::isolate([&] {
      try {
        trial(index);
      } catch (...) {
        failures[index] = std::current_exception();
        failed.store(true);
      }
    });
  });
  for (std::size_t i = 0; i < count; ++i) run.try_put(i);
  graph.wait_for_all();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace treadle::engine
