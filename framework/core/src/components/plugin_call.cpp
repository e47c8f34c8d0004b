#include <treadle/core/components/plugin_call.h>

#include <c10/util/Exception.h>
#include <cxxabi.h>

#include <new>

#include <treadle/base/error.h>

namespace treadle {
namespace {

std::string call_of(const Provided& object, std::string_view method) {
  const std::string who = object.origin().empty() ? std::string("a component") : object.origin();
  return who + " failed in " + std::string(method) + "()";
}

// Of the initial executable's kind: a first access in a signal handler must not allocate.
[[gnu::tls_model("initial-exec")]] thread_local const detail::RunningCall* running_call = nullptr;

}  // namespace

namespace detail {

RunningCall::RunningCall(std::string_view origin, std::string_view method) noexcept
    : origin_(origin), method_(method), outer_(running_call) {
  running_call = this;
}

RunningCall::~RunningCall() {
  running_call = outer_;
}

void rethrow_from(const Provided& object, std::string_view method) {
  if (object.origin().empty())
    throw;
  rethrow_as(call_of(object, method));
}

void rethrow_as(const std::string& what_failed) {
  try {
    throw;
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const ContractViolation& error) {
    throw PluginError(what_failed + ": " + error.what());
  } catch (const Error&) {
    throw;
  } catch (const c10::OutOfMemoryError&) {
    throw;  // of a device; whoever knows the device says what to lower
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    // libtorch's allocator says in words what the standard library has a type for.
    if (text.find("can't allocate memory") != std::string::npos)
      throw std::bad_alloc();
    if (is_missing_operator(text))
      throw TrainingError(what_failed + ": " + words_of(error));
    throw PluginError(what_failed + ": " + text);
  } catch (const std::exception& error) {
    throw PluginError(what_failed + ": " + error.what());
  } catch (...) {
    throw PluginError(what_failed + ": it threw something that is not a std::exception");
  }
}

}  // namespace detail

// For a dtype: "tanh" not implemented for 'Half'. For a device: Could not run 'aten::tanh' with
// arguments from the 'Meta' backend. This could be because …
bool is_missing_operator(std::string_view text) {
  return text.find("\" not implemented for '") != std::string_view::npos ||
         text.starts_with("Could not run 'aten::");
}

std::string words_of(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  if (!is_missing_operator(text))
    return text;
  return text.substr(0, text.find(". This could be because")) +
         " (this libtorch lacks the operator; choose another \"precision\", another device, or "
         "other layers)";
}

PluginCall running_plugin_call() noexcept {
  const detail::RunningCall* call = running_call;
  return call == nullptr ? PluginCall{} : PluginCall{call->origin(), call->method()};
}

void refuse_result(const Provided& object, std::string_view method, std::string_view because) {
  throw PluginError(call_of(object, method) + ": it " + std::string(because));
}

}  // namespace treadle
