#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/components/state_dict.h>
#include <treadle/core/devices/device_backend.h>
#include <treadle/core/history/timeline.h>
#include <treadle/core/model/logged_values.h>
#include <treadle/engine/step_rows.h>
#include <treadle/tensor/task_random.h>

namespace treadle::engine {

/// The numbers of a step that the host knows.
struct StepNumber {
  std::int64_t step = 0;  ///< from 1
  double rate = 0;
  std::uint64_t seed = 0;
  /// Of each group of parameters; empty: in proportion to `rate`.
  std::vector<double> group_rates = {};
};

/// What a step reads and leaves besides its memory: of each shard.
struct ShardMemory {
  StateDict* model_state = nullptr;  ///< replaced by the step
  LoggedValues* logged = nullptr;    ///< of the step alone
  TaskGenerators* generators = nullptr;
};

/// A step as CapturedSteps sees it; implemented by TrainingStep.
class CapturableStep {
 public:
  using Memory = std::vector<std::pair<std::string, at::Tensor>>;

  virtual ~CapturableStep();

  /// Puts the numbers where work() finds them: on the device, and in the shards' generators.
  virtual void begin(const StepNumber& number) = 0;
  /// Everything that a step enqueues. Reads nothing of the host that changes between steps.
  virtual void work(const StepRows& rows) = 0;
  /// All that work() changes, by name for people: the tensors themselves.
  virtual Memory memory() = 0;
  virtual std::vector<ShardMemory> shards() = 0;
  /// What work() depends on besides the batch and its memory: another text, other work.
  virtual std::string layout() = 0;
  /// The same, of what changes from one step to the next.
  virtual std::string variant(const StepNumber& number) = 0;
};

/// Steps that a device records once for each kind of batch (dtypes and shapes), and replays.
///
/// A kind is recorded when it comes for the third time. Its first replays are compared with steps
/// that are carried out from the same state: once with the numbers of the step and once with
/// others, so that a number of the host that was recorded instead of read is found. A difference is
/// a TrainingError that names the tensor. What cannot be recorded is carried out as before, and
/// why_not() says why.
///
/// Owned by a TrainingStep; one training thread.
class CapturedSteps {
 public:
  static constexpr std::int64_t kWarmUp = 2;      ///< steps of a kind before it is recorded
  static constexpr std::size_t kMostKinds = 16;   ///< each keeps the memory of a step
  static constexpr std::size_t kMostKnown = 256;  ///< of which steps are counted

  /// All outlive it. A null timeline is not told.
  CapturedSteps(const DeviceBackend& backend, c10::Device device, CapturableStep& step,
                Timeline* timeline);
  ~CapturedSteps();

  /// Replays the step for `rows`, which are on the device. False, and nothing has changed, where it
  /// is for the caller to carry out.
  bool run(const StepRows& rows, const StepNumber& number);

  /// Why steps are not recorded; empty: they are.
  const std::string& why_not() const { return why_not_; }
  std::int64_t replays() const { return replays_; }

 private:
  struct Kind;

  void record(Kind& kind, const StepRows& rows, const StepNumber& number);
  void compare(Kind& kind, const StepRows& rows, const StepNumber& number);
  void replay(Kind& kind, const StepRows& rows, const StepNumber& number);
  void carry_out(const StepRows& rows, const StepNumber& number);

  const DeviceBackend& backend_;
  const c10::Device device_;
  CapturableStep& step_;
  Timeline* const timeline_;
  std::string layout_;
  std::map<std::string, std::unique_ptr<Kind>> kinds_;
  std::size_t recorded_ = 0;
  std::int64_t replays_ = 0;
  std::string why_not_;
};

}  // namespace treadle::engine
