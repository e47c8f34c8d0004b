#pragma once

#include <stdexcept>
#include <string>

/// Errors, by who has to act. One class per exit code of `workflow-runner`. The text names the
/// place, what was expected, what was found and the remedy, because most users see only the text.
namespace treadle {

/// The documented exit codes of `workflow-runner`. Scripts rely on the numbers: never renumber.
enum class ErrorKind {
  kInternal = 1,  ///< an invariant of Treadle was violated: please report it
  kUsage = 2,     ///< the command line
  kDocument = 3,  ///< the workflow document
  kPlugin = 4,    ///< a plugin file, or a component that failed where it may not
  kData = 5,      ///< the data
  kTraining = 6,  ///< training went wrong: a loss that is not a number, a model that does not fit
  kStorage = 7,   ///< the run folder: not writable, disk full, damaged checkpoint
  kCommunication = 8,  ///< another process of the training is gone, or does not answer
  kInterrupted = 130   ///< stopped by the user; the run can be resumed
};

/// Root of every exception Treadle throws on purpose.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message);
  ~Error() override;

  ErrorKind kind() const noexcept { return kind_; }
  int exit_code() const noexcept { return static_cast<int>(kind_); }

 private:
  ErrorKind kind_;
};

class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message);
  ~UsageError() override;
};

class PluginError : public Error {
 public:
  explicit PluginError(const std::string& message);
  ~PluginError() override;
};

class DataError : public Error {
 public:
  explicit DataError(const std::string& message);
  ~DataError() override;
};

class TrainingError : public Error {
 public:
  explicit TrainingError(const std::string& message);
  ~TrainingError() override;
};

class StorageError : public Error {
 public:
  explicit StorageError(const std::string& message);
  ~StorageError() override;
};

/// Another process of the training is gone, does not answer, or is of another training.
class CommunicationError : public Error {
 public:
  static constexpr int kUnknownRank = -1;

  explicit CommunicationError(const std::string& message, int rank = kUnknownRank);
  ~CommunicationError() override;

  /// Of the process that is to blame.
  int rank() const noexcept { return rank_; }

 private:
  int rank_;
};

/// Thrown when a stop was requested and everything worth keeping has been saved.
class Interrupted : public Error {
 public:
  explicit Interrupted(const std::string& message);
  ~Interrupted() override;
};

/// A caller, or Treadle itself, violated the contract of a header. Must not be caught to continue.
class ContractViolation : public Error {
 public:
  explicit ContractViolation(const std::string& message);
  ~ContractViolation() override;
};

namespace detail {
[[noreturn]] void contract_violated(const char* expression, const char* file, int line,
                                    const std::string& explanation);
}  // namespace detail
}  // namespace treadle

/// Checks a precondition. Stays on in release builds: it is never used in a hot loop. `explanation`
/// is only evaluated on failure.
#define TREADLE_EXPECTS(condition, explanation)                                            \
  do {                                                                                     \
    if (!(condition)) [[unlikely]]                                                         \
      ::treadle::detail::contract_violated(#condition, __FILE__, __LINE__, (explanation)); \
  } while (false)
