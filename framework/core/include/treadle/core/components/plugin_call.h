#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <treadle/base/provided.h>

namespace c10 {
class Error;
}

namespace treadle {

namespace detail {
/// Rethrows the exception in flight, converted for callers of plugins; see call_plugin().
[[noreturn]] void rethrow_from(const Provided& object, std::string_view method);
/// The same, with the words before the colon: "optimizer \"adamw\" … could not be made".
[[noreturn]] void rethrow_as(const std::string& what_failed);

/// Marks on this thread whose code runs, so that a fatal signal can name it.
class RunningCall {
 public:
  RunningCall(std::string_view origin, std::string_view method) noexcept;
  ~RunningCall();
  RunningCall(const RunningCall&) = delete;
  RunningCall& operator=(const RunningCall&) = delete;

  std::string_view origin() const noexcept { return origin_; }
  std::string_view method() const noexcept { return method_; }

 private:
  std::string_view origin_;
  std::string_view method_;
  const RunningCall* outer_;
};
}  // namespace detail

/// Which plugin's code runs on this thread.
struct PluginCall {
  std::string_view origin;  ///< as Provided::origin(); empty when none does
  std::string_view method;  ///< "forward"; empty while the component is made
};
/// Safe to call from a signal handler.
PluginCall running_plugin_call() noexcept;

/// Calls into an object that a plugin may have provided. Every public function of an interface
/// does.
///
/// A treadle::Error passes unchanged. So do std::bad_alloc, c10::OutOfMemoryError (the memory of a
/// device) and what ends a thread. An operator that libtorch lacks for a dtype or device becomes a
/// TrainingError that says what to choose otherwise. Everything else becomes a PluginError that
/// names the origin of the object and the function, libtorch's exceptions without their stack
/// trace. So does a ContractViolation: the plugin, not Treadle, violated the contract. Objects that
/// no registry created have no origin, and their exceptions pass unchanged.
template <typename Call>
decltype(auto) call_plugin(const Provided& object, std::string_view method, Call&& call) {
  const detail::RunningCall running(object.origin(), method);
  try {
    return std::forward<Call>(call)();
  } catch (...) {
    detail::rethrow_from(object, method);
  }
}

/// Whether these words of libtorch mean that it has no such operator for a dtype or a device.
bool is_missing_operator(std::string_view text);
/// The message of libtorch without its stack trace; for a missing operator, with a remedy.
std::string words_of(const c10::Error& error);

/// For what a plugin returned and may not: throws a PluginError, `<origin> failed in plan():
/// <why>`. `because` goes on after "it": "returned no model".
[[noreturn]] void refuse_result(const Provided& object, std::string_view method,
                                std::string_view because);

}  // namespace treadle
