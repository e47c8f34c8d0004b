#include "command_line/program.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include <treadle/base/version.h>

#include "command_line/failure.h"
#include "terminal/piped_document.h"
#include "terminal/terminal.h"

namespace treadle::cli {
namespace {

/// Also known when the arguments were not understood.
bool wants_json(const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), "--json") != words.end();
}

/// Of the words, those that are the line's documents.
void keep_piped_documents(const CommandLine& line, std::span<char*> words) {
  const std::vector<Argument>& arguments = line.command->arguments;
  for (std::size_t i = 0; i < std::min(arguments.size(), line.arguments.size()); ++i) {
    const auto word = std::find_if(words.begin(), words.end(),
                                   [&](const char* one) { return line.arguments[i] == one; });
    if (arguments[i].name == "DOCUMENT" && word != words.end())
      keep_piped_document(*word);
  }
}

void execute(std::span<char*> words, const Program& program) {
  const auto parsed = [&] {
    return parse_command_line(std::vector<std::string>(words.begin(), words.end()));
  };
  CommandLine line = parsed();
  if (!line.help && !line.version) {
    keep_piped_documents(line, words);
    line = parsed();
  }
  const Terminal out(STDOUT_FILENO);
  if (line.help)
    return out.answer(help_text(line, out.width()));
  if (line.version) {
    out.answer("workflow-runner " + std::string(version()) + "\n");
    return;
  }
  const auto handler = program.handlers.find(line.command->name);
  if ((line.needs_tensors() && !program.has_tensors) || handler == program.handlers.end())
    return program.elsewhere(line);
  handler->second(line);
}

/// A closed standard stream would be the number of the next file that is opened, and text meant for
/// a person would end up in that.
void open_standard_streams() {
  for (int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(number, F_GETFD) < 0 && open("/dev/null", O_RDWR) != number)
      return;  // without /dev/null nothing can be done
  }
}

}  // namespace

int report_failure(const std::exception_ptr& error, bool as_json) {
  const Failure failure = explain(error);
  const Terminal people(STDERR_FILENO);
  if (!as_json) {
    people.write(failure.text(people.width()));
    return failure.exit_code();
  }
  try {
    Terminal(STDOUT_FILENO)
        .answer(failure.json().dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
                "\n");
  } catch (const StorageError&) {
    people.write(failure.text(people.width()));
  }
  return failure.exit_code();
}

int run_program(int argc, char** argv, const Program& program) {
  open_standard_streams();
  // A file that becomes too large is an error with a message, as a full disk is.
  signal(SIGXFSZ, SIG_IGN);
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  try {
    execute(std::span(argv + std::min(argc, 1), argv + argc), program);
    return 0;
  } catch (const AlreadyTold& told) {
    return static_cast<int>(told.kind);
  } catch (...) {
    return report_failure(std::current_exception(), wants_json(words));
  }
}

}  // namespace treadle::cli
