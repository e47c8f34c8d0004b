#include <treadle/engine/trials.h>

#include <exception>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/task_arena.h>

#include <treadle/base/error.h>

namespace treadle::engine {
namespace {

namespace flow = oneapi::tbb::flow;

/// Lets trials in, one after another, as long as there is room.
class Admission {
 public:
  using Trial = std::function<void(std::size_t, const Settled&)>;

  Admission(std::size_t count, TrialLimits limits, const Trial& trial)
      : limits_(std::move(limits)),
        trial_(trial),
        failures_(count),
        node_(graph_, flow::unlimited, [this](std::size_t index) { run(index); }) {}

  void run_all() {
    admit();
    graph_.wait_for_all();
    for (const std::exception_ptr& failure : failures_) {
      if (failure)
        std::rethrow_exception(failure);
    }
  }

 private:
  void run(std::size_t index) {
    // Waiting for a batch must not pick up another trial: it would train inside this one, with this
    // thread's settings.
    oneapi::tbb::this_task_arena::isolate([&] {
      try {
        trial_(index, [this, index] { settle_soon(index); });
      } catch (...) {
        failures_[index] = std::current_exception();
        const std::lock_guard lock(mutex_);
        failed_ = true;
      }
    });
    {
      const std::lock_guard lock(mutex_);
      --running_;
      if (unsettled_ == index)
        unsettled_.reset();
    }
    admit();
  }

  /// Not from here: what this thread spawns in its isolation it may also pick up.
  void settle_soon(std::size_t index) {
    graph_.reserve_wait();
    oneapi::tbb::this_task_arena::enqueue([this, index] {
      {
        const std::lock_guard lock(mutex_);
        if (unsettled_ == index)
          unsettled_.reset();
      }
      admit();
      graph_.release_wait();
    });
  }

  void admit() {
    const std::lock_guard lock(mutex_);
    if (next_ == failures_.size() || failed_ || unsettled_ || running_ == limits_.at_once)
      return;
    if (running_ > 0 && limits_.fits && !limits_.fits())
      return;
    unsettled_ = next_;
    ++running_;
    node_.try_put(next_++);
  }

  const TrialLimits limits_;
  const Trial& trial_;
  std::vector<std::exception_ptr> failures_;

  std::mutex mutex_;
  std::size_t next_ = 0;
  std::size_t running_ = 0;
  std::optional<std::size_t> unsettled_;  // the newest, until it has its memory
  bool failed_ = false;

  flow::graph graph_;
  flow::function_node<std::size_t> node_;
};

}  // namespace

void run_trials(std::size_t count, TrialLimits limits,
                const std::function<void(std::size_t, const Settled&)>& trial) {
  TREADLE_EXPECTS(limits.at_once >= 1, "at least one trial runs at a time");
  Admission(count, std::move(limits), trial).run_all();
}

}  // namespace treadle::engine
