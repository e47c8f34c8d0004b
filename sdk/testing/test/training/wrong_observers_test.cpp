#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/testing/training/observer_contract.h>

#include "component/wrong.h"

namespace treadle::testing {
namespace wrong_observers {
namespace {

namespace fs = std::filesystem;

/// Writes a line for everything it hears of a run. What a wrong one does otherwise it overrides.
class Listener : public RunObserver {
 public:
  explicit Listener(const fs::path& folder) : file_(folder / "heard.txt") {}

 protected:
  virtual void write(const std::string& line) {
    std::ofstream file(file_, std::ios::app);
    file << line << '\n';
    file.close();
    if (!file)
      throw StorageError(file_.string() + ": cannot be written");
  }

  void do_run_started(const std::string& name, const std::string&) override { write(name); }
  void do_epoch_completed(const FitId& fit, const EpochSummary& summary) override {
    write(fit.path() + " " + std::to_string(summary.train_loss));
  }

  fs::path file_;
};

class KeepsALogOfItsOwn final : public Listener {
 public:
  using Listener::Listener;

 private:
  void write(const std::string& line) override {
    Listener::write(line);
    std::ofstream("listener.log", std::ios::app) << line << '\n';
  }
};

class SaysNothingOfFullDisks final : public Listener {
 public:
  using Listener::Listener;

 private:
  void write(const std::string& line) override {
    std::ofstream(file_, std::ios::app) << line << '\n';
  }
};

class TrustsNames final : public Listener {
 public:
  using Listener::Listener;

 private:
  void do_run_started(const std::string& name, const std::string& folder) override {
    if (name.find_first_of("\"<%/") != name.npos)
      throw StorageError("odd name");
    Listener::do_run_started(name, folder);
  }
};

class ExpectsOneTrainingAtATime final : public Listener {
 public:
  using Listener::Listener;

 private:
  void do_epoch_completed(const FitId& fit, const EpochSummary& summary) override {
    if (fit.path() != current_)
      throw StorageError("another training has begun");
    Listener::do_epoch_completed(fit, summary);
  }
  void do_fit_started(const FitId& fit) override { current_ = fit.path(); }
  std::string current_;
};

class DiesOfMissingNumbers final : public Listener {
 public:
  using Listener::Listener;

 private:
  void do_epoch_completed(const FitId& fit, const EpochSummary& summary) override {
    if (!summary.val_loss)
      throw StorageError("no loss");
    Listener::do_epoch_completed(fit, summary);
  }
};

class WantsToHearTheBeginning final : public Listener {
 public:
  using Listener::Listener;

 private:
  void do_epoch_completed(const FitId& fit, const EpochSummary& summary) override {
    if (summary.epoch != 1 && epochs_[fit.path()] != summary.epoch - 1)
      throw StorageError("an epoch was left out");
    epochs_[fit.path()] = summary.epoch;
    Listener::do_epoch_completed(fit, summary);
  }
  std::map<std::string, std::int64_t> epochs_;
};

template <typename T>
ObserverCase one(std::string name) {
  return {std::move(name),
          [](const fs::path& folder) { return std::make_unique<T>(folder); },
          {"heard.txt"}};
}

std::vector<Wrong<ObserverCase>> all() {
  return {{one<KeepsALogOfItsOwn>("KeepsALogOfItsOwn"), {"WritesOnlyWhereItWasTold"}},
          {one<SaysNothingOfFullDisks>("SaysNothingOfFullDisks"), {"SaysWhereItCannotWrite"}},
          {one<DiesOfMissingNumbers>("DiesOfMissingNumbers"),
           {"HearsAWholeRun", "HearsTrainingsThatRunAtOnce", "HearsARunThatEndsAnywhere",
            "HearsARunThatIsResumed", "HearsOfRunsWithAnyName",
            "MayBeToldFromAnotherThreadEachTime", "WritesOnlyWhereItWasTold"}},
          {one<WantsToHearTheBeginning>("WantsToHearTheBeginning"), {"HearsARunThatIsResumed"}},
          {one<TrustsNames>("TrustsNames"), {"HearsOfRunsWithAnyName"}},
          {one<ExpectsOneTrainingAtATime>("ExpectsOneTrainingAtATime"),
           {"HearsTrainingsThatRunAtOnce", "MayBeToldFromAnotherThreadEachTime"}}};
}

INSTANTIATE_TEST_SUITE_P(Right, ObserverContract, ::testing::Values(one<Listener>("Listener")),
                         CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, ObserverContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_observers

std::vector<Defect> observer_defects() {
  return defects_of("ObserverContract", wrong_observers::all());
}

}  // namespace treadle::testing
