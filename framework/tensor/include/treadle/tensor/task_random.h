#pragma once

#include <cstdint>
#include <memory>

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

namespace treadle {

/// The generators of a task that is carried out again and again: they stay the same objects, and
/// are seeded anew each time. A step that a device has recorded draws from the objects that it was
/// recorded with.
class TaskGenerators {
 public:
  explicit TaskGenerators(c10::Device device);
  /// From here on they draw what a TaskRandom with this seed draws.
  void seed(std::uint64_t seed);
  /// The generator of operators on the device: one of the CPU where libtorch has none for it.
  const at::Generator& of_device() const { return device_.defined() ? device_ : host_; }
  /// While a device records the task. A TaskRandom within it has a seed that the host knows and a
  /// replay does not draw anew, so drawing from one throws a TrainingError.
  void set_recorded(bool on) { is_recorded_ = on; }

 private:
  friend class TaskRandom;
  at::Generator host_;
  at::Generator device_;  // undefined: the device has none
  c10::Device where_;
  std::uint64_t seed_ = 0;
  bool is_recorded_ = false;
};

/// While it lives, every random operator of libtorch that this thread runs (dropout, init, randn,
/// …) draws from a generator seeded with `seed`, although it takes no generator argument or got
/// none.
///
/// libtorch's default generator is shared by the whole process: with parallel folds its bits would
/// depend on timing. Every task that runs model code holds one of these, seeded from (run seed,
/// purpose, fold, step), so there is nothing to store in a checkpoint. Modules need no support for
/// it; an operator with an explicit generator keeps it. Scopes nest. Does not follow tasks to other
/// threads.
///
/// On the CPU what is chosen with a probability (bernoulli_, and so every dropout) is a function of
/// its place: of the seed, and of how many elements the scope has chosen before (Philox).
/// Everything else, and everything on other devices, is drawn from generators.
///
/// How: a boxed kernel for each `aten` operator with a generator argument, on a dispatch key
/// nothing else uses, switched on per thread. The first scope of the process installs the kernels.
class TaskRandom {
 public:
  explicit TaskRandom(std::uint64_t seed);
  /// Draws from these, as they are seeded now. They outlive the scope.
  explicit TaskRandom(const TaskGenerators& generators);
  ~TaskRandom();
  TaskRandom(const TaskRandom&) = delete;
  TaskRandom& operator=(const TaskRandom&) = delete;

  /// Created at the first use: most scopes draw nothing.
  const at::Generator& generator() const;

 private:
  struct Scope;
  std::unique_ptr<Scope> scope_;
};

/// A number from the stream of the innermost TaskRandom of this thread, or of libtorch's default
/// generator where there is none: a seed for a part of the task that shall draw by itself.
std::uint64_t draw_from_task();

/// A CPU generator with a sequence of its own.
at::Generator make_generator(std::uint64_t seed);

}  // namespace treadle
