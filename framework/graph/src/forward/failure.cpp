#include "forward/failure.h"

#include <new>
#include <utility>

#include <c10/util/Exception.h>
#include <cxxabi.h>

#include <treadle/core/components/plugin_call.h>

// An exception that leaves a node becomes a Failure and collects places on its way out, innermost
// first; only the outermost graph turns it into an error that people see (Failure::raise()). Not
// converted: the unwinding of a thread that is cancelled, a lack of memory, and Interrupted.

namespace treadle::graph {
namespace {

/// A Failure of what is in flight; passes on what is none.
Failure caught(const std::string& text_before) {
  try {
    throw;
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const c10::OutOfMemoryError&) {
    throw;  // of a device; whoever knows the device says what to lower
  } catch (const Interrupted&) {
    throw;
  } catch (const PluginError& error) {
    return {ErrorKind::kPlugin, text_before + error.what()};
  } catch (...) {
    return {ErrorKind::kTraining, text_before + words_in_flight()};
  }
}

}  // namespace

void Failure::raise() const {
  if (kind_ == ErrorKind::kPlugin)
    throw PluginError(text());
  throw TrainingError(text());
}

std::string Failure::text() const {
  std::string way;
  for (auto place = way_.rbegin(); place != way_.rend(); ++place)
    way += (way.empty() ? "in " : ", ") + *place;
  return way.empty() ? text_ : way + ": " + text_;
}

void rethrow_within(const std::string& place) {
  try {
    throw;
  } catch (Failure& failure) {
    failure.came_through(place);
    throw;
  } catch (...) {
    Failure failure = caught("");
    failure.came_through(place);
    throw failure;
  }
}

void rethrow_failed(const std::string& place, const std::string& text_before) {
  try {
    throw;
  } catch (Failure& failure) {
    failure.came_through(place);
    throw;
  } catch (...) {
    throw caught(text_before);
  }
}

std::string words_in_flight() {
  try {
    throw;
  } catch (const Failure& failure) {
    return failure.text();
  } catch (const c10::Error& error) {
    return words_of(error);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "something that is not a std::exception was thrown";
  }
}

}  // namespace treadle::graph
