#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <treadle/base/time_text.h>
#include <treadle/host/record/run_result.h>

#include "terminal/terminal.h"

/// Results as text for people. Every function returns complete lines.
namespace treadle::cli {

/// A number in at most nine columns: four decimals where that suits, else an exponent; a dash for
/// NaN and infinities.
std::string number_text(double value);

/// "640 bytes", "12.3 MiB".
std::string bytes_text(double bytes);

/// The table at the end of a run: loss, metrics in the document's order, which weights the model
/// holds; for a cross-validation mean and deviation; and what the test rows came to.
std::string result_table(const RunResult& result, const Terminal& terminal);

/// The table at the end of a pipeline: its stages, what they came to, and where they are.
std::string pipeline_table(const PipelineResult& result, const Terminal& terminal);

/// Where the time of a run went, a hint where workers were idle, and an empty line; nothing when
/// the result has no times.
std::string time_table(const RunResult& result, const Terminal& terminal);

/// What `evaluate` found: loss, metrics, and the confusion matrix when it is small.
std::string evaluation_table(const EvaluationResult& result, const Terminal& terminal);

/// Any JSON as indented lines, "key: value": for facts whose names explain themselves.
std::string facts_text(const nlohmann::json& facts, std::size_t indent = 0);

}  // namespace treadle::cli
