#include "program.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include <treadle/base/version.h>

#include "failure.h"
#include "terminal.h"

namespace treadle::cli {
namespace {

/// Also known when the arguments were not understood.
bool wants_json(const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), "--json") != words.end();
}

int report(const Failure& failure, bool as_json) {
  if (as_json) {
    Terminal(STDOUT_FILENO)
        .write(failure.json().dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  } else {
    Terminal(STDERR_FILENO).write(failure.text());
  }
  return failure.exit_code();
}

void execute(const std::vector<std::string>& words, const Program& program) {
  const CommandLine line = parse_command_line(words);
  const Terminal out(STDOUT_FILENO);
  if (line.help) {
    out.write(help_text(line));
  } else if (line.version) {
    out.write("workflow-runner " + std::string(version()) + "\n");
  } else if (line.needs_tensors() != program.has_tensors) {
    program.elsewhere(line);
  } else {
    program.handlers.at(line.command->name)(line);
  }
}

}  // namespace

int run_program(int argc, char** argv, const Program& program) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  try {
    execute(words, program);
    return 0;
  } catch (const AlreadyTold& told) {
    return static_cast<int>(told.kind);
  } catch (...) {
    return report(explain(std::current_exception()), wants_json(words));
  }
}

}  // namespace treadle::cli
