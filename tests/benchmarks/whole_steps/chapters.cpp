#include "chapters.h"

#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "comparison.h"
#include "curves.h"

namespace treadle::benchmarks {
namespace {

namespace fs = std::filesystem;

constexpr double kMegabyte = 1e6;

std::vector<std::string> python(const Programs& programs, const std::string& file,
                                std::vector<std::string> more = {}) {
  std::vector<std::string> words{programs.python.string(), (programs.peers / file).string()};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<std::string> eager_python(const Programs& programs,
                                      std::vector<std::string> more = {}) {
  more.insert(more.end(), {"--device", programs.device});
  return python(programs, "eager.py", std::move(more));
}

bool is_accelerator(const Programs& programs) {
  return programs.device != "cpu";
}

std::unique_ptr<Way> by_hand(const Programs& programs, const std::string& name, int threads,
                             int blas_threads, double part_of_epochs = 1) {
  return std::make_unique<Loop>(
      name, std::vector{programs.by_hand.string(), std::string("--device"), programs.device},
      threads, blas_threads, part_of_epochs);
}

std::unique_ptr<Way> eager(const Programs& programs, const std::string& name, int threads,
                           int blas_threads, double part_of_epochs = 1) {
  return std::make_unique<Loop>(name, eager_python(programs), threads, blas_threads,
                                part_of_epochs);
}

/// Everything that is compared on an accelerator with the runner that captures steps. Rows lie
/// there, in the loops; no loop waits for a loss before the end of an epoch.
std::vector<std::unique_ptr<Way>> ways_on_device(const Programs& programs) {
  std::vector<std::unique_ptr<Way>> ways;
  ways.push_back(std::make_unique<Runner>("runner, eager", programs, 1, 1));
  ways.push_back(Runner::on_cpu("runner on the CPU", programs));
  ways.push_back(by_hand(programs, "by hand", 1, 1));
  ways.push_back(eager(programs, "eager PyTorch", 1, 1));
  ways.push_back(std::make_unique<Loop>(
      "torch.compile", eager_python(programs, {"--compile", "reduce-overhead"}), 1, 1));
  ways.push_back(
      std::make_unique<Loop>("PyTorch, CUDA graph", eager_python(programs, {"--capture"}), 1, 1));
  return ways;
}

/// Everything that is compared with the runner of one worker.
std::vector<std::unique_ptr<Way>> other_ways(const Workload& workload, const Programs& programs,
                                             bool is_quick) {
  // Their steps may take several times as long as those of others, and as long in few epochs as in
  // many.
  constexpr double kThird = 1.0 / 3;
  std::vector<std::unique_ptr<Way>> ways;
  if (workload.shards_for_two()) {
    ways.push_back(
        std::make_unique<Runner>("runner, 2 workers", programs, 2, *workload.shards_for_two()));
  }
  ways.push_back(by_hand(programs, "by hand", 1, 1));
  ways.push_back(eager(programs, "eager PyTorch", 1, 1));
  if (is_quick)
    return ways;
  if (workload.shards_for_two().value_or(1) > 1) {
    ways.push_back(by_hand(programs, "by hand, 2 BLAS threads", 1, 2));
    ways.push_back(by_hand(programs, "by hand, 2 threads", 2, 2, kThird));
    ways.push_back(eager(programs, "eager PyTorch, 2 BLAS threads", 1, 2));
    ways.push_back(eager(programs, "eager PyTorch, 2 threads", 2, 2, kThird));
  }
  ways.push_back(std::make_unique<Loop>("torch.compile",
                                        eager_python(programs, {"--compile", "default"}), 1, 1));
  ways.push_back(std::make_unique<Loop>("skorch", python(programs, "skorch_fit.py"), 1, 1, kThird));
  return ways;
}

/// `value_of` is what is compared of an outcome.
template <typename ValueOf>
Contestant contestant(const Way& way, const Workload& workload, Assignment assignment,
                      const std::string& name, ValueOf value_of) {
  return {name, way.is_ours(), [&way, &workload, assignment = std::move(assignment), value_of] {
            return value_of(way.train(workload, assignment));
          }};
}

Measure step_of(const Outcome& outcome) {
  Measure measure{outcome.microseconds_per_step, {}};
  if (outcome.validation_share > 0)
    measure.beside["rows that do not train, % of the time"] = 100 * outcome.validation_share;
  if (outcome.idle_share >= 0)
    measure.beside["the device without work, % of the time"] = 100 * outcome.idle_share;
  return measure;
}

Measure work_of(const Outcome& outcome) {
  return {
      outcome.seconds,
      {{"peak memory of the process, MB", static_cast<double>(outcome.peak_bytes) / kMegabyte}}};
}

Measure start_of(const Outcome& outcome) {
  return {outcome.told_seconds_to_step(), {}};
}

/// Adds the contestant unless it is not here, which one training tells.
void add_if_here(std::vector<Contestant>& contestants, Contestant one) {
  try {
    one.measure();
    contestants.push_back(std::move(one));
  } catch (const NotHere& reason) {
    std::printf("  %s is not here: %s\n", one.name.c_str(), reason.what());
  }
}

}  // namespace

bool measure_steps(const Workload& workload, const fs::path& folder, const Programs& programs,
                   const Effort& effort) {
  const Runner runner("runner", programs, 1, 1, is_accelerator(programs) ? "captured" : "eager");
  const auto others = is_accelerator(programs) ? ways_on_device(programs)
                                               : other_ways(workload, programs, effort.is_quick);
  const Compared compared = compare_curves(workload, folder, runner, others);
  std::vector<Contestant> contestants;
  for (const Way* way : compared.same)
    contestants.push_back(contestant(*way, workload, {.folder = folder}, way->name(), step_of));
  compare(contestants, workload.goals(), "microseconds per step", effort.rounds);
  return compared.all_agree;
}

bool measure_saving(const Workload& workload, const fs::path& folder, const Programs& programs,
                    const Effort& effort) {
  const Runner runner("runner", programs, 1, 1);
  std::vector<std::unique_ptr<Way>> loops;
  loops.push_back(by_hand(programs, "by hand", 1, 1));
  if (!compare_curves(workload, folder, runner, loops).all_agree)
    return false;
  const Way& loop = *loops.front();
  const Assignment usual{.folder = folder};
  const Assignment saving{.folder = folder, .save_every = workload.save_every()};
  compare({contestant(runner, workload, usual, "runner", step_of),
           contestant(runner, workload, saving, "runner, saving", step_of),
           contestant(loop, workload, usual, "by hand", step_of),
           contestant(loop, workload, saving, "by hand, saving", step_of)},
          workload.goals(), "microseconds per step", effort.rounds);
  return true;
}

bool measure_folds(const Workload& workload, const fs::path& folder, const Programs& programs,
                   const Effort& effort) {
  const Runner one("runner", programs, 1, 1);
  const Runner two("runner, 2 workers", programs, 2, 1);
  const Loop skorch("skorch", python(programs, "skorch_fit.py", {"--folds", "5"}), 1, 1);
  const Assignment assignment{.folder = folder};
  std::vector<Contestant> contestants{contestant(one, workload, assignment, one.name(), work_of),
                                      contestant(two, workload, assignment, two.name(), work_of)};
  if (!effort.is_quick && !is_accelerator(programs))
    add_if_here(contestants, contestant(skorch, workload, assignment, skorch.name(), work_of));
  compare(contestants, workload.goals(), "seconds, from the reading of the data to the result",
          effort.rounds);
  return true;
}

bool measure_start_up(const Workload& workload, const fs::path& folder, const Programs& programs,
                      const Effort& effort) {
  const Runner runner("runner", programs, 1, 1);
  const auto loop = by_hand(programs, "by hand", 1, 1);
  const auto python_loop = eager(programs, "eager PyTorch", 1, 1);
  const Assignment assignment{.folder = folder};
  std::vector<Contestant> contestants;
  // The training that tells whether they are here also brings files into the system's cache.
  for (const Way* way : {static_cast<const Way*>(&runner), static_cast<const Way*>(loop.get()),
                         static_cast<const Way*>(python_loop.get())}) {
    add_if_here(contestants, contestant(*way, workload, assignment, way->name(), start_of));
  }
  compare(contestants, workload.goals(), "seconds", effort.rounds);
  return true;
}

}  // namespace treadle::benchmarks
