#include <treadle/engine/thread_budget.h>

#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <latch>
#include <mutex>
#include <thread>
#include <vector>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_scheduler_observer.h>

#include <treadle/base/error.h>

namespace treadle::engine {
namespace {

/// OpenBLAS and BLIS keep thread pools of their own; these are their documented switches.
void set_blas_threads(int count) {
  using SetThreads = void (*)(int);
  for (const char* name :
       {"openblas_set_num_threads", "bli_thread_set_num_threads", "MKL_Set_Num_Threads"}) {
    if (void* symbol = dlsym(RTLD_DEFAULT, name))
      reinterpret_cast<SetThreads>(symbol)(count);
  }
}

/// Sets what is per thread when a thread starts to work in the arena. OpenMP's thread count and the
/// denormal mode are such settings.
class WorkerSettings : public oneapi::tbb::task_scheduler_observer {
 public:
  WorkerSettings(oneapi::tbb::task_arena& arena, int intra_op_threads)
      : task_scheduler_observer(arena), intra_op_threads_(intra_op_threads) {
    observe(true);
  }
  ~WorkerSettings() override { observe(false); }

  void on_scheduler_entry(bool) override {
    // Not unconditionally: the call also throws away libtorch's primitive cache.
    if (at::get_num_threads() != intra_op_threads_)
      at::set_num_threads(intra_op_threads_);
    at::globalContext().setFlushDenormal(true);
  }

 private:
  const int intra_op_threads_;
};

/// Throws std::system_error when the system does not give `count` more threads. oneTBB, which asks
/// for them while tasks run, would end the process.
void expect_threads(int count) {
  std::vector<pid_t> ids(static_cast<std::size_t>(count));
  {
    std::latch all_started(1);
    std::vector<std::jthread> threads;
    try {
      for (pid_t& id : ids) {
        threads.emplace_back([&all_started, &id] {
          id = gettid();
          all_started.wait();
        });
      }
    } catch (...) {
      all_started.count_down();
      throw;
    }
    all_started.count_down();
  }
  // They are counted for a moment longer than they are joined.
  for (const pid_t id : ids) {
    while (tgkill(getpid(), id, 0) == 0)
      std::this_thread::yield();
  }
}

}  // namespace

struct ThreadBudget::Impl {
  Impl(int workers, int intra_op_threads)
      : limit(oneapi::tbb::global_control::max_allowed_parallelism,
              static_cast<std::size_t>(workers)),
        arena(workers) {
    // Tasks run with the denormal mode that the thread had which made their arena, whatever their
    // own thread is set to.
    at::globalContext().setFlushDenormal(true);
    arena.initialize();
    settings = std::make_unique<WorkerSettings>(arena, intra_op_threads);
  }

  oneapi::tbb::global_control limit;
  oneapi::tbb::task_arena arena;
  std::unique_ptr<WorkerSettings> settings;
  std::once_flag has_threads;
};

ThreadBudget::ThreadBudget(int workers, int intra_op_threads) {
  TREADLE_EXPECTS(workers >= 0, "a budget has at least one worker");
  TREADLE_EXPECTS(intra_op_threads >= 1, "an operator has at least one thread");
  set_blas_threads(intra_op_threads);
  impl_ = std::make_unique<Impl>(workers == 0 ? available_cores() : workers, intra_op_threads);
}

ThreadBudget::~ThreadBudget() = default;

int ThreadBudget::workers() const {
  return impl_->arena.max_concurrency();
}

void ThreadBudget::run(const std::function<void()>& work) {
  std::call_once(impl_->has_threads, [this] { expect_threads(workers() - 1); });
  impl_->arena.execute(work);
}

std::string blas_name() {
  struct Known {
    const char* in_path;
    const char* name;
  };
  static constexpr Known kKnown[] = {{"openblas", "OpenBLAS"},
                                     {"libmkl", "MKL"},
                                     {"libblis", "BLIS"},
                                     {"libblas.so", "reference"}};
  std::ifstream maps("/proc/self/maps");
  const std::string text((std::istreambuf_iterator<char>(maps)), std::istreambuf_iterator<char>());
  for (const Known& known : kKnown) {
    if (text.find(known.in_path) != std::string::npos)
      return known.name;
  }
  return "unknown";
}

}  // namespace treadle::engine
