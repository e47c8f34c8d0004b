#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "process.h"
#include "workload.h"

namespace treadle::benchmarks {

/// Where the programs are that make the steps.
struct Programs {
  std::filesystem::path runner;   ///< workflow-runner
  std::filesystem::path plugins;  ///< a folder with those of tests/benchmarks/plugins
  std::filesystem::path by_hand;
  std::filesystem::path python;   ///< an interpreter that has the peers' packages
  std::filesystem::path peers;    ///< a folder with Python programs
  std::filesystem::path scratch;  ///< for what programs leave behind
  std::string device = "cpu";     ///< where models are trained, as a document and libtorch name it
  /// Further folders with plugins that the runner needs for the device.
  std::vector<std::string> more_plugins = {};
};

/// What a way has to do with a workload that was written into a folder.
struct Assignment {
  std::filesystem::path folder;
  std::optional<int> epochs = {};      ///< absent: the document's
  std::filesystem::path weights = {};  ///< initial ones; empty: random ones
  bool shuffle = true;          ///< else the first four fifths of the rows train, in their order
  bool in_double = false;       ///< in float64, not float32
  std::int64_t save_every = 0;  ///< steps between checkpoints; 0: what is usual
};

/// What came of it; what a way does not tell is 0, or empty.
struct Outcome {
  std::vector<double> losses;  ///< the mean training loss of each epoch
  double microseconds_per_step = 0;
  double seconds = 0;           ///< of the work, from the reading of the data to its end
  double seconds_to_step = 0;   ///< from the start of the process to the end of the first step
  double validation_share = 0;  ///< of the time, spent on rows that do not train
  double idle_share = -1;       ///< of the time of a device without work; below 0: not measured
  std::int64_t peak_bytes = 0;
  std::string libtorch;

  /// seconds_to_step, or an error where nobody told it.
  double told_seconds_to_step() const;
};

/// The way is not to be had on this machine; what() says why.
class NotHere : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A way to train, in a process of its own.
class Way {
 public:
  explicit Way(std::string name) : name_(std::move(name)) {}
  virtual ~Way();
  Way(const Way&) = delete;
  Way& operator=(const Way&) = delete;

  const std::string& name() const { return name_; }
  virtual bool is_ours() const = 0;
  /// Throws NotHere, or std::runtime_error with what the program said when it failed.
  virtual Outcome train(const Workload& workload, const Assignment& assignment) const = 0;

 private:
  std::string name_;
};

/// workflow-runner, with everything on that is on by default.
class Runner final : public Way {
 public:
  /// On the programs' device, or on the CPU. `execution`: "eager" or "captured".
  Runner(std::string name, const Programs& programs, int workers, int shards,
         std::string execution = "eager")
      : Runner(std::move(name), programs, programs.device, workers, shards, std::move(execution)) {}
  static std::unique_ptr<Runner> on_cpu(std::string name, const Programs& programs);

  bool is_ours() const override { return true; }
  /// Begins with random weights, those that initial_weights() tells of.
  Outcome train(const Workload& workload, const Assignment& assignment) const override;

  /// Writes the weights that all trainings of the document begin with into a file of the folder.
  std::filesystem::path initial_weights(const std::filesystem::path& folder, bool in_double) const;

 private:
  Runner(std::string name, const Programs& programs, std::string device, int workers, int shards,
         std::string execution)
      : Way(std::move(name)),
        programs_(programs),
        device_(std::move(device)),
        workers_(workers),
        shards_(shards),
        execution_(std::move(execution)) {}

  nlohmann::json run(const std::filesystem::path& folder, const std::vector<std::string>& settings,
                     Finished& finished) const;

  const Programs& programs_;
  std::string device_;
  int workers_;
  int shards_;
  std::string execution_;
};

/// A program that trains as `by-hand` does: the same arguments, the same line of JSON.
class Loop final : public Way {
 public:
  /// Threads of operators and of BLAS are set apart: PyTorch's own setting says nothing to
  /// OpenBLAS. With `part_of_epochs` it trains only so many of the epochs: for ways whose steps
  /// take long.
  Loop(std::string name, std::vector<std::string> command, int threads, int blas_threads,
       double part_of_epochs = 1)
      : Way(std::move(name)),
        command_(std::move(command)),
        threads_(threads),
        blas_threads_(blas_threads),
        part_of_epochs_(part_of_epochs) {}

  bool is_ours() const override { return false; }
  Outcome train(const Workload& workload, const Assignment& assignment) const override;

 private:
  std::vector<std::string> command_;
  int threads_;
  int blas_threads_;
  double part_of_epochs_;
};

}  // namespace treadle::benchmarks
