// treadle-run: executes the commands that need tensors. Started by workflow-runner, with the same
// arguments.
#include <string>

#include <treadle/base/error.h>

#include "command_line/program.h"
#include "commands/tensor_commands.h"
#include "terminal/fatal_signals.h"

int main(int argc, char** argv) {
  using namespace treadle::cli;
  report_fatal_signals();
  const Program program{true,
                        {{"run", run_document},
                         {"auto", run_auto},
                         {"tune", tune},
                         {"resume", resume},
                         {"launch", report_group},
                         {"check", check},
                         {"data describe", describe_data_of_document},
                         {"compare", compare_row_by_row},
                         {"evaluate", evaluate},
                         {"predict", predict},
                         {"generate", generate},
                         {"graft", graft},
                         {"latency", measure_latency},
                         {"runs export", export_run},
                         {"devices", print_devices},
                         {"graph", draw_graph}},
                        [](const CommandLine& line) {
                          throw treadle::UsageError("treadle-run does not execute \"" +
                                                    std::string(line.command->name) +
                                                    "\"; start workflow-runner instead");
                        }};
  return run_program(argc, argv, program);
}
