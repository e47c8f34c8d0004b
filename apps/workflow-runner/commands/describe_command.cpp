#include <unistd.h>

#include <string>

#include <nlohmann/json.hpp>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>
#include <treadle/host/run/described_data.h>

#include "command_line/answer.h"
#include "commands/tensor_commands.h"
#include "terminal/description_text.h"
#include "terminal/terminal.h"

namespace treadle::cli {

void describe_data_of_document(const CommandLine& line) {
  if (pipeline_document(line)) {
    throw UsageError("a pipeline has several data sets; describe those of the document of a stage");
  }
  const std::string output = line.has("output") ? line.output_file("output") : "";
  const Runtime runtime = make_runtime(line);
  const std::string& document = line.arguments[0];
  const describe::DataDescription description =
      describe_data(runtime, runtime.read(document, line.overrides()));
  if (!output.empty()) {
    write_file_atomically(output, nlohmann::json(description).dump(2) + "\n");
    if (is_standard_output(output))
      return;  // nothing but the description
  }
  if (line.has("json")) {
    print(nlohmann::json(description));
  } else if (!line.has("quiet")) {
    print(description_text(description, document, Terminal(STDOUT_FILENO)) +
          (output.empty() ? "" : "\nthe description is in " + output + "\n"));
  }
}

}  // namespace treadle::cli
