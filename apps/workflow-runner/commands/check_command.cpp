#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/host/run/pipeline.h>
#include <treadle/host/run/workflow_run.h>

#include "command_line/answer.h"
#include "commands/tensor_commands.h"
#include "terminal/description_text.h"
#include "terminal/result_text.h"
#include "terminal/terminal.h"

namespace treadle::cli {
namespace {

using Json = nlohmann::json;

std::string notes_text(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes)
    text += "note: " + note + "\n";
  return text;
}

void check_with_data(const CommandLine& line) {
  const Runtime runtime = make_runtime(line);
  const ResolvedWorkflow workflow = runtime.read(line.arguments[0], line.overrides());
  const std::vector<std::string> notes = check_document(runtime, workflow);
  const DryRun dry = dry_run(runtime, workflow);
  Json facts{{"data", dry.data}, {"model", dry.model}, {"validation", dry.validation}};
  if (!dry.rules.is_null())
    facts["rules"] = dry.rules;
  if (!dry.search.is_null()) {
    facts["search"] = dry.search;
    facts["search"].erase("bytes_of_a_training");
    facts["search"]["memory_of_a_training"] =
        bytes_text(dry.search.at("bytes_of_a_training").get<double>());
  }
  if (line.has("json")) {
    print(Json{{"document", line.arguments[0]},
               {"problems", Json::array()},
               {"notes", notes},
               {"resolved", workflow.resolved},
               {"data", dry.data},
               {"model", dry.model},
               {"validation", dry.validation},
               {"rules", dry.rules},
               {"search", dry.search},
               {"suspicions", dry.suspicions},
               {"estimated_bytes", dry.estimated_bytes},
               {"device", dry.device},
               {"estimated_device_bytes", dry.estimated_device_bytes}});
  } else if (!line.has("quiet")) {
    print(line.arguments[0] + ": no problems found; one batch went through everything\n" +
          notes_text(notes) + warnings_text(dry.suspicions, Terminal(STDOUT_FILENO)) +
          facts_text(facts) + "memory: about " +
          bytes_text(static_cast<double>(dry.estimated_bytes)) +
          " at the peak, on top of the program itself\n" +
          (dry.estimated_device_bytes == 0
               ? std::string()
               : "memory of " + dry.device + ": about " +
                     bytes_text(static_cast<double>(dry.estimated_device_bytes)) +
                     " at the peak\n"));
  }
}

/// Without data: what only libtorch, the device and plugins' code know.
void check_without_data(const CommandLine& line) {
  const Runtime runtime = make_runtime(line);
  const ResolvedWorkflow workflow = runtime.read(line.arguments[0], line.overrides());
  const std::vector<std::string> notes = check_document(runtime, workflow);
  if (line.has("json")) {
    print(Json{{"document", line.arguments[0]},
               {"problems", Json::array()},
               {"notes", notes},
               {"resolved", workflow.resolved}});
  } else if (!line.has("quiet")) {
    print(line.arguments[0] + ": no problems found\n" + notes_text(notes));
  }
}

void check_pipeline(const CommandLine& line, const std::shared_ptr<const Document>& document) {
  if (line.has("dry-run")) {
    throw UsageError("--dry-run is about one training; check the document of a stage for it");
  }
  const Runtime runtime = make_runtime(line);
  const Pipeline pipeline = Pipeline::read(document, runtime);
  if (line.has("json")) {
    print(Json{{"document", line.arguments[0]},
               {"problems", Json::array()},
               {"notes", Json::array()},
               {"resolved", pipeline.document()}});
  } else if (!line.has("quiet")) {
    print(line.arguments[0] + ": no problems found\n");
  }
}

}  // namespace

void check(const CommandLine& line) {
  if (const auto document = pipeline_document(line))
    return check_pipeline(line, document);
  return line.has("dry-run") ? check_with_data(line) : check_without_data(line);
}

}  // namespace treadle::cli
