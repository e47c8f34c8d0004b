#pragma once

#include <cstddef>
#include <exception>

#include <c10/util/Exception.h>

#include <treadle/base/component.h>
#include <treadle/base/plugin_abi.h>

namespace treadle::detail {

/// Runs what stands between the braces of TREADLE_PLUGIN for one call of the entry. Everything it
/// throws becomes text here, so nothing is ever thrown across the C function.
inline int run_plugin_entry(const TreadlePluginHost* host,
                            void (*register_components)(Registrar&)) noexcept {
  constexpr std::size_t kNeeded =
      offsetof(TreadlePluginHost, error_context) + sizeof(TreadlePluginHost::error_context);
  if (host == nullptr || host->struct_size < kNeeded || host->registrar == nullptr ||
      host->report_error == nullptr) {
    return 2;
  }
  try {
    register_components(*static_cast<Registrar*>(host->registrar));
    return 0;
  } catch (const c10::Error& error) {
    // what() would add the stack trace, which does not help readers of a message.
    host->report_error(host->error_context, error.what_without_backtrace());
  } catch (const std::exception& error) {
    host->report_error(host->error_context, error.what());
  } catch (...) {
    host->report_error(host->error_context,
                       "it threw something that is not derived from std::exception");
  }
  return 1;
}

}  // namespace treadle::detail

/// Registers the components of this library; use it once, in one source file of a plugin:
///
///     TREADLE_PLUGIN(registrar) {
///       registrar.add<AdamW>("adamw");
///     }
///
/// The names are those of the `<name>.schema.json` files beside the source. Nothing else runs when
/// a plugin is loaded, and the host runs it once, when the first component is requested.
#define TREADLE_PLUGIN(registrar)                                                   \
  static void treadle_register_components(::treadle::Registrar& registrar);         \
  extern "C" __attribute__((visibility("default"))) int treadle_plugin_entry_v1(    \
      const TreadlePluginHost* host) noexcept {                                     \
    return ::treadle::detail::run_plugin_entry(host, &treadle_register_components); \
  }                                                                                 \
  static void treadle_register_components([[maybe_unused]] ::treadle::Registrar& registrar)
