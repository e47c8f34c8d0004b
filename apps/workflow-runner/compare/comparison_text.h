#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/host/compare/comparability.h>
#include <treadle/host/compare/method_comparison.h>

#include "terminal/terminal.h"

/// The comparison of methods: text for people, JSON for programs.
namespace treadle::cli {

/// A table of the methods with mean, deviation and interval.
std::string methods_text(const compare::MethodComparison& comparison, const Terminal& terminal);
/// The differences from the best method, a paragraph for each number.
std::string differences_text(const compare::MethodComparison& comparison, const Terminal& terminal);
/// "methods" and "differences", with runs by their names.
nlohmann::json comparison_json(const compare::MethodComparison& comparison,
                               const std::vector<compare::MeasuredRun>& measured);

std::string checks_text(const std::vector<compare::Check>& checks, const Terminal& terminal);
nlohmann::json checks_json(const std::vector<compare::Check>& checks);

}  // namespace treadle::cli
