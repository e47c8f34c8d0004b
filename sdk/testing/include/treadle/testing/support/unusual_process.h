#pragma once

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cfenv>
#include <clocale>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <locale>
#include <string>
#include <vector>

#include <ATen/Context.h>
#include <ATen/ops/rand.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/ScalarTypeToTypeMeta.h>

#include <treadle/testing/support/scratch_folder.h>

namespace treadle::testing {

/// While it lives, the process is not as one expects: another default dtype, grad mode, directory,
/// locale, environment … What sets one of them to a fixed value cannot be seen where it has that
/// value already, from the last time; here it can, by a ProcessState before and after. Puts
/// everything back.
///
/// For one thread: nobody else may run meanwhile.
class UnusualProcess {
 public:
  UnusualProcess()
      : dtype_(c10::get_default_dtype()),
        folder_before_(std::filesystem::current_path()),
        umask_(::umask(0127)),
        rounding_(std::fegetround()),
        c_locale_(std::setlocale(LC_ALL, nullptr)) {
    c10::set_default_dtype(
        c10::scalarTypeToTypeMeta(dtype_.toScalarType() == at::kDouble ? at::kFloat : at::kDouble));
    c10::GradMode::set_enabled(!grad_mode_);
    generator_state_ = generator_.get_state();
    at::rand({1});  // no seed leads to this state
    std::filesystem::current_path(folder_.path());
    std::fesetround(rounding_ == FE_TONEAREST ? FE_UPWARD : FE_TONEAREST);
    std::setlocale(LC_ALL, c_locale_ == "C" ? "C.UTF-8" : "C");
    for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable)
      environment_.emplace_back(*variable);
    ::clearenv();
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      struct sigaction unusual {};
      unusual.sa_handler = [](int) {};
      ::sigaction(kSignals[i], &unusual, &handlers_[i]);
    }
  }
  ~UnusualProcess() {
    for (std::size_t i = 0; i < kSignals.size(); ++i)
      ::sigaction(kSignals[i], &handlers_[i], nullptr);
    ::clearenv();
    for (const std::string& variable : environment_) {
      const std::size_t end = variable.find('=');
      ::setenv(variable.substr(0, end).c_str(), variable.substr(end + 1).c_str(), 1);
    }
    std::locale::global(locale_);  // sets the C locale as well
    std::setlocale(LC_ALL, c_locale_.c_str());
    std::fesetround(rounding_);
    ::umask(umask_);
    std::filesystem::current_path(folder_before_);
    generator_.set_state(generator_state_);
    c10::GradMode::set_enabled(grad_mode_);
    c10::set_default_dtype(dtype_);
  }
  UnusualProcess(const UnusualProcess&) = delete;
  UnusualProcess& operator=(const UnusualProcess&) = delete;

 private:
  static constexpr std::array kSignals = {SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGUSR1, SIGUSR2};

  caffe2::TypeMeta dtype_;
  bool grad_mode_ = c10::GradMode::is_enabled();
  at::Generator generator_ = at::globalContext().defaultGenerator(at::kCPU);
  at::Tensor generator_state_;
  ScratchFolder folder_;
  std::filesystem::path folder_before_;
  ::mode_t umask_;
  int rounding_;
  std::string c_locale_;
  std::locale locale_;
  std::vector<std::string> environment_;
  std::array<struct sigaction, 6> handlers_ = {};
};

}  // namespace treadle::testing
