#include "step/process_failure.h"

#include <c10/util/Exception.h>

#include <treadle/core/components/plugin_call.h>

namespace treadle::engine {

ProcessFailure failure_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return {known.kind(), known.what()};
  } catch (const c10::Error& error_of_libtorch) {
    return {ErrorKind::kTraining, words_of(error_of_libtorch)};
  } catch (const std::exception& other) {
    return {ErrorKind::kTraining, other.what()};
  }
}

void throw_again(const ProcessFailure& failure, std::int64_t rank) {
  const std::string message =
      failure.message + " (in the process of rank " + std::to_string(rank) + ")";
  switch (failure.kind) {
    case ErrorKind::kPlugin:
      throw PluginError(message);
    case ErrorKind::kData:
      throw DataError(message);
    case ErrorKind::kStorage:
      throw StorageError(message);
    default:
      throw TrainingError(message);
  }
}

}  // namespace treadle::engine
