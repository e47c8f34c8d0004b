#include <treadle/sdk.h>

#include <chrono>
#include <filesystem>

#include <treadle/base/atomic_file.h>

namespace {

/// Writes the moment at which it first hears of a step, as nanoseconds of the clock that all
/// processes of the machine share (CLOCK_MONOTONIC).
///
/// Observers hear of steps a few times a second, and at the end of an epoch of its last one: where
/// an epoch is one step, that is at once.
class FirstStep final : public treadle::RunObserver {
 public:
  explicit FirstStep(const treadle::Config& config) : path_(config.get<std::string>("path")) {}

 private:
  void do_run_started(const std::string&, const std::string&) override { is_written_ = false; }

  void do_step_completed(const treadle::FitId&, const treadle::StepProgress&) override {
    if (is_written_)
      return;
    const std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
    treadle::write_file_atomically(path_, std::to_string(now.count()) + "\n");
    is_written_ = true;
  }

  std::filesystem::path path_;
  bool is_written_ = false;
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<FirstStep>("first_step");
}
