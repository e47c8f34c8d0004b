#pragma once

#include <memory>

#include <treadle/base/document.h>
#include <treadle/host/run/runtime.h>

#include "command_line/command_line.h"

// The commands that treadle-run executes, each in the file that is named above it. Each throws what
// goes wrong; what it prints is its answer.
namespace treadle::cli {

// training_commands.cpp
void run_document(const CommandLine& line);
void resume(const CommandLine& line);
// search_commands.cpp
void tune(const CommandLine& line);
// group_command.cpp: a process of `launch --check`
void report_group(const CommandLine& line);
// auto_command.cpp
void run_auto(const CommandLine& line);
// check_command.cpp
void check(const CommandLine& line);
// describe_command.cpp
void describe_data_of_document(const CommandLine& line);
// prediction_commands.cpp
void evaluate(const CommandLine& line);
void predict(const CommandLine& line);
void generate(const CommandLine& line);
// model_commands.cpp
void compare_row_by_row(const CommandLine& line);
void draw_graph(const CommandLine& line);
void export_run(const CommandLine& line);
void graft(const CommandLine& line);
void measure_latency(const CommandLine& line);
void print_devices(const CommandLine& line);

/// The plugins that the command line names.
Runtime make_runtime(const CommandLine& line);

/// The document of a pipeline, with what --set changes; null: it has no stages.
std::shared_ptr<const Document> pipeline_document(const CommandLine& line);

}  // namespace treadle::cli
