#include "command_line/failure.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

#include <treadle/base/problem.h>
#include <treadle/base/text_wrap.h>

namespace treadle::cli {
namespace {

constexpr std::array<std::pair<ErrorKind, std::string_view>, 9> kKindWords{{
    {ErrorKind::kInternal, "internal"},
    {ErrorKind::kUsage, "usage"},
    {ErrorKind::kDocument, "document"},
    {ErrorKind::kPlugin, "plugin"},
    {ErrorKind::kData, "data"},
    {ErrorKind::kTraining, "training"},
    {ErrorKind::kStorage, "storage"},
    {ErrorKind::kCommunication, "communication"},
    {ErrorKind::kInterrupted, "interrupted"},
}};

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (!line.empty())
      lines.emplace_back(line);
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return lines;
}

/// libtorch puts a stack trace behind its messages.
std::string without_trace(std::string_view text) {
  return std::string(text.substr(0, text.find("\nException raised from ")));
}

Failure internal_failure(std::string_view message) {
  Failure failure;
  failure.lines = split_lines(without_trace(message));
  if (failure.lines.empty())
    failure.lines.emplace_back("something went wrong that has no name");
  failure.lines.emplace_back(
      "this is a mistake in Treadle; please report it with the command and the lines above");
  return failure;
}

/// What the system has too little of, and what to do about it.
struct Shortage {
  int error_number;
  std::string_view remedy;
};
constexpr std::array kShortages{
    Shortage{EMFILE, "raise the limit on open files: ulimit -n 1024"},
    Shortage{ENFILE, "the system has too many open files: close other programs"},
    Shortage{EAGAIN,
             "raise the limit on threads and processes: ulimit -u 4096, or ask for fewer "
             "resources.workers"},
    Shortage{ENOMEM, "use a smaller training.batch_size or fewer resources.workers"}};

/// Lack of something that the system gives; a mistake of ours otherwise.
Failure system_failure(const std::system_error& error) {
  for (const Shortage& shortage : kShortages) {
    if (error.code() != std::error_code(shortage.error_number, std::generic_category()) &&
        error.code() != std::error_code(shortage.error_number, std::system_category()))
      continue;
    Failure failure;
    failure.kind = ErrorKind::kStorage;
    failure.lines = {std::string(error.what()) + "; " + std::string(shortage.remedy)};
    return failure;
  }
  return internal_failure(error.what());
}

nlohmann::json problems_of(const DocumentError& error) {
  nlohmann::json problems = nlohmann::json::array();
  for (const Problem& problem : error.problems()) {
    problems.push_back({{"file", problem.place.file},
                        {"line", problem.place.line},
                        {"column", problem.place.column},
                        {"pointer", problem.pointer},
                        {"message", problem.message}});
  }
  return problems;
}

}  // namespace

std::string Failure::text(std::size_t columns) const {
  constexpr std::string_view kProgram = "workflow-runner: ";
  std::string text;
  for (const std::string& line : lines) {
    if (kProgram.size() + display_columns(line) <= columns) {
      text += std::string(kProgram) + line + "\n";
    } else {
      text += hanging_text("workflow-runner:", kProgram.size(), line, columns);
    }
  }
  return text;
}

nlohmann::json Failure::json() const {
  std::string message;
  for (const std::string& line : lines)
    message += (message.empty() ? "" : "\n") + line;
  nlohmann::json error{
      {"kind", kind_word(kind)}, {"exit_code", exit_code()}, {"message", std::move(message)}};
  error["problems"] = problems.is_array() ? problems : nlohmann::json::array();
  return {{"error", std::move(error)}};
}

Failure explain(const std::exception_ptr& error) {
  Failure failure;
  try {
    std::rethrow_exception(error);
  } catch (const DocumentError& document) {
    failure.kind = document.kind();
    failure.lines = split_lines(document.what());
    failure.problems = problems_of(document);
  } catch (const Error& known) {
    if (known.kind() == ErrorKind::kInternal)
      return internal_failure(known.what());
    failure.kind = known.kind();
    failure.lines = split_lines(without_trace(known.what()));
  } catch (const std::bad_alloc&) {
    failure.lines = {
        "there is not enough memory; use a smaller training.batch_size or fewer "
        "resources.workers, and see \"workflow-runner check --dry-run\" for an estimate"};
  } catch (const std::system_error& error) {
    return system_failure(error);
  } catch (const std::exception& unexpected) {
    return internal_failure(unexpected.what());
  } catch (...) {
    return internal_failure("");
  }
  return failure;
}

std::string kind_word(ErrorKind kind) {
  for (const auto& [known, word] : kKindWords) {
    if (known == kind)
      return std::string(word);
  }
  return "internal";
}

}  // namespace treadle::cli
