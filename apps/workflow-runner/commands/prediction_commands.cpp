#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/host/run/explained_run.h>
#include <treadle/host/run/generator.h>
#include <treadle/host/run/predictor.h>

#include "command_line/answer.h"
#include "command_line/option_values.h"
#include "commands/tensor_commands.h"
#include "terminal/interruption.h"
#include "terminal/reasons_text.h"
#include "terminal/result_text.h"
#include "terminal/terminal.h"

namespace treadle::cli {
namespace {

using Json = nlohmann::json;

std::uint64_t draw_seed(const CommandLine& line) {
  return line.has("seed") ? number_of<std::uint64_t>(line, "seed", "a whole number from 0 on") : 0;
}

SampleOptions samples_of(const CommandLine& line) {
  SampleOptions samples;
  if (!line.has("samples"))
    return samples;
  samples.count = number_of<std::int64_t>(line, "samples", "a whole number");
  if (samples.count < 1)
    throw UsageError("--samples is the number of samples to draw for each row, at least 1");
  samples.seed = draw_seed(line);
  return samples;
}

UncertaintyOptions uncertainty_of(const CommandLine& line) {
  UncertaintyOptions uncertainty;
  uncertainty.is_requested = line.has("uncertainty");
  if (!line.has("mc-dropout"))
    return uncertainty;
  uncertainty.dropout_passes = number_of<std::int64_t>(line, "mc-dropout", "a whole number");
  if (uncertainty.dropout_passes < 2)
    throw UsageError("--mc-dropout is the number of passes, at least 2");
  uncertainty.seed = draw_seed(line);
  return uncertainty;
}

/// For a terminal, which a model's output must not control. New lines and tabs stay.
std::string harmless(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\n\t"), text.size());
    shown += plain_text(text.substr(0, end));
    shown += text.substr(end, 1);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return shown;
}

std::string_view name_of(GeneratedText::End end) {
  constexpr std::array<std::string_view, 4> kNames{"length", "end_of_text", "stop_string",
                                                   "stopped"};
  return kNames[static_cast<std::size_t>(end)];
}

}  // namespace

void evaluate(const CommandLine& line) {
  const bool has_data = line.arguments.size() > 1;
  const bool explains = line.has("explain");
  if (!has_data && !explains) {
    throw UsageError(
        "evaluate takes a file with targets; without one, --explain evaluates the rows that the "
        "run held out");
  }
  const Runtime runtime = make_runtime(line);
  const std::string device = device_for_use(line);
  Json answer = Json::object();
  std::string text;
  const Terminal terminal(STDOUT_FILENO);
  if (has_data) {
    const EvaluationResult evaluated =
        Predictor::load(runtime, line.arguments[0], device).evaluate_file(line.arguments[1]);
    answer = to_json(evaluated);
    text = evaluation_table(evaluated, terminal);
  }
  if (explains) {
    answer["reasons"] =
        explain_run(runtime, line.arguments[0], has_data ? line.arguments[1] : "", device);
    text += (has_data ? "\n" : "") + reasons_text(answer["reasons"], terminal);
  }
  if (line.has("json")) {
    print(answer);
  } else if (!line.has("quiet")) {
    print(text);
  }
}

void predict(const CommandLine& line) {
  const std::string output = line.output_file("output");
  const std::vector<std::string> keep = column_names(line, "keep");
  const bool continues = line.has("horizon");
  const std::int64_t steps =
      continues ? number_of<std::int64_t>(line, "horizon", "a whole number") : 0;
  if (continues && steps < 1)
    throw UsageError("--horizon is the number of steps to predict, at least 1");
  if (continues && !keep.empty())
    throw UsageError("--keep copies columns of rows that are there, and --horizon predicts others");
  if (line.has("seed") && !line.has("samples") && !line.has("mc-dropout")) {
    throw UsageError(
        "--seed is that of samples or of dropout, and there are none without --samples or "
        "--mc-dropout");
  }
  const SampleOptions samples = samples_of(line);
  const UncertaintyOptions uncertainty = uncertainty_of(line);
  const Runtime runtime = make_runtime(line);
  const Predictor predictor = Predictor::load(runtime, line.arguments[0], device_for_use(line));
  const WrittenPredictions written =
      continues ? predictor.continue_series(line.arguments[1], output, steps, samples, uncertainty)
                : predictor.predict_file(line.arguments[1], output, keep, samples, uncertainty);
  if (is_standard_output(output))
    return;  // nothing but the rows
  if (line.has("json")) {
    print(Json{{"rows", written.rows}, {"crossed", written.crossed}, {"output", output}});
  } else if (!line.has("quiet")) {
    print(std::to_string(written.rows) + (written.rows == 1 ? " row" : " rows") +
          " predicted, in " + output + "\n");
    if (written.crossed > 0) {
      print("note: in " + std::to_string(written.crossed) +
            (written.crossed == 1 ? " line" : " lines") +
            " a quantile is above one of a higher level\n");
    }
  }
}

void generate(const CommandLine& line) {
  GenerationOptions options;
  options.max_new_tokens = number_of<std::int64_t>(line, "max-new-tokens", "a whole number");
  options.temperature = number_of<double>(line, "temperature", "a number");
  options.top_k = number_of<std::int64_t>(line, "top-k", "a whole number");
  options.top_p = number_of<double>(line, "top-p", "a number");
  options.seed = number_of<std::uint64_t>(line, "seed", "a whole number from 0 on");
  options.stop_strings = line.texts("stop");
  const std::string prompt = line.text("prompt");
  const Runtime runtime = make_runtime(line);
  const Generator generator = Generator::load(runtime, line.arguments[0], device_for_use(line));
  const bool as_json = line.has("json");
  const Terminal terminal(STDOUT_FILENO);
  const auto write = [&](std::string_view text) {
    if (!as_json)
      terminal.answer(terminal.is_terminal() ? harmless(text) : std::string(text));
  };
  Interruption interruption([](bool) {}, [] {});
  options.stop = interruption.token();
  write(prompt);
  const GeneratedText generated = generator.generate(prompt, options, write);
  if (as_json) {
    print(Json{{"prompt", prompt},
               {"text", generated.text},
               {"tokens", generated.tokens},
               {"ended_by", name_of(generated.end)},
               {"used_cache", generated.used_cache}});
  } else if (terminal.is_terminal()) {
    terminal.answer("\n");
  }
  if (generated.end == GeneratedText::End::kStopped)
    throw Interrupted("stopped after " + std::to_string(generated.tokens) + " tokens");
}

}  // namespace treadle::cli
