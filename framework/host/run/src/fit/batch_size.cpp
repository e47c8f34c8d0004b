#include "fit/batch_size.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <new>
#include <string>

#include <c10/util/Exception.h>

#include <treadle/engine/available_memory.h>
#include <treadle/engine/batch_pipeline.h>
#include <treadle/engine/evaluation.h>

#include "fit/fit.h"
#include "fit/tried_training.h"
#include "resources/run_device.h"
#include "runtime/run_record.h"

namespace treadle::internal {
namespace {

constexpr std::int64_t kFirst = 32;
/// Of a stream, whose rows are not counted.
constexpr std::int64_t kMostOfAStream = std::int64_t{1} << 16;
/// While the second and third step are made, the pipeline holds batches ahead, and the optimizer
/// has its state.
constexpr TriedSteps kThree{3, 3, {}};
constexpr double kShareOfAvailable = 0.8;
/// Of a device's memory, beside the batches that may lie there ahead: how many do differs from step
/// to step, and a few steps see few of them.
constexpr double kShareOfDevice = 0.9;
const std::int64_t kAhead = engine::PipelineOptions().buffer_bytes;

class Search {
 public:
  explicit Search(DocumentComponents& components)
      : components_(components), on_cpu_(components.device().device().is_cpu()) {}

  std::int64_t largest(std::int64_t most) {
    std::int64_t size = std::min(kFirst, most);
    if (fits(size)) {
      while (size * 2 <= most && may_try_double() && fits(size * 2))
        size *= 2;
      return size;
    }
    while (size > 1) {
      size /= 2;
      if (fits(size))
        return size;
    }
    components_.set_batch_size(1);
    within_memory_of(components_.device(), [&] { train(1); });  // throws; else it fits by now
    return 1;
  }

 private:
  bool fits(std::int64_t size) {
    const RunDevice& device = components_.device();
    const std::int64_t before = resident_memory_bytes();
    const std::int64_t available = engine::available_memory_bytes().value_or(kNoLimit);
    const DeviceMemory there = device.backend->memory(device.device());
    reset_peak_memory();
    device.backend->reset_peak(device.device());
    bool fits = true;
    try {
      train(size);
    } catch (const c10::OutOfMemoryError&) {
      fits = false;
    } catch (const std::bad_alloc&) {
      fits = false;
    }
    taken_ = peak_memory_bytes() - before;
    // What was enqueued last still holds memory.
    device.backend->synchronize(device.device());
    if (on_cpu_)
      return fits && is_little(taken_, available, kShareOfAvailable);
    const std::int64_t taken_there = device.backend->memory(device.device()).peak - there.in_use;
    return fits && (there.available == 0 ||
                    is_little(taken_there + kAhead, there.available, kShareOfDevice));
  }

  /// On a CPU the system ends a process that takes too much, so that must not be tried.
  bool may_try_double() const {
    return !on_cpu_ || is_little(2 * taken_, engine::available_memory_bytes().value_or(kNoLimit),
                                 kShareOfAvailable);
  }

  static bool is_little(std::int64_t bytes, std::int64_t available, double share) {
    return static_cast<double>(bytes) <= share * static_cast<double>(available);
  }

  void train(std::int64_t size) {
    components_.set_batch_size(size);
    // The first is evaluated alone, then some at once.
    constexpr std::int64_t kEvaluated = 1 + engine::kMostBatchesAtOnce;
    const std::int64_t evaluation_batch =
        std::max(size, components_.training_plan().evaluation_batch_size);
    const Fold& fold = components_.first_fold();
    Fit fit(components_, {{"batch-size", 0, 1},
                          {first_of(fold.training, kThree.most * size),
                           first_of(fold.validation, kEvaluated * evaluation_batch), 0}});
    try_training(fit, kThree);  // it is evaluated in batches no smaller than those it trains on
  }

  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

  DocumentComponents& components_;
  const bool on_cpu_;
  std::int64_t taken_ = 0;  // by the last that fitted
};

}  // namespace

void find_batch_size(DocumentComponents& components) {
  if (!components.has_open_batch_size())
    return;
  const std::size_t rows = components.first_fold().training.size();
  const std::int64_t most =
      components.stream() ? kMostOfAStream : static_cast<std::int64_t>(std::bit_floor(rows));
  const std::int64_t size = Search(components).largest(std::max<std::int64_t>(most, 1));
  components.settle_batch_size(
      size,
      size == most && !components.stream()
          ? "all training rows fit into the memory"
          : "the largest power of two that fits into the memory of " + components.device().name);
}

void find_batch_size_together(DocumentComponents& components, Communicator& communicator) {
  if (communicator.rank() == 0)
    find_batch_size(components);
  std::int64_t size = components.training_plan().batch_size;
  communicator.broadcast(std::as_writable_bytes(std::span(&size, 1)), 0);
  if (communicator.rank() > 0)
    components.settle_batch_size(size, "as the process of rank 0 found it");
}

}  // namespace treadle::internal
