#include <treadle/base/error.h>

namespace treadle {

Error::Error(ErrorKind kind, const std::string& message)
    : std::runtime_error(message), kind_(kind) {}
Error::~Error() = default;

UsageError::UsageError(const std::string& message) : Error(ErrorKind::kUsage, message) {}
UsageError::~UsageError() = default;

PluginError::PluginError(const std::string& message) : Error(ErrorKind::kPlugin, message) {}
PluginError::~PluginError() = default;

DataError::DataError(const std::string& message) : Error(ErrorKind::kData, message) {}
DataError::~DataError() = default;

TrainingError::TrainingError(const std::string& message) : Error(ErrorKind::kTraining, message) {}
TrainingError::~TrainingError() = default;

StorageError::StorageError(const std::string& message) : Error(ErrorKind::kStorage, message) {}
StorageError::~StorageError() = default;

CommunicationError::CommunicationError(const std::string& message, int rank)
    : Error(ErrorKind::kCommunication, message), rank_(rank) {}
CommunicationError::~CommunicationError() = default;

Interrupted::Interrupted(const std::string& message) : Error(ErrorKind::kInterrupted, message) {}
Interrupted::~Interrupted() = default;

ContractViolation::ContractViolation(const std::string& message)
    : Error(ErrorKind::kInternal, message) {}
ContractViolation::~ContractViolation() = default;

namespace detail {

void contract_violated(const char* expression, const char* file, int line,
                       const std::string& explanation) {
  // Where the build lay on its builder's machine helps nobody.
  std::string name(file);
  name.erase(0, name.find_last_of('/') + 1);
  throw ContractViolation(name + ":" + std::to_string(line) + ": " + explanation +
                          " (expected: " + expression + ")");
}

}  // namespace detail
}  // namespace treadle
