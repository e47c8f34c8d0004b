// A training step through workflow-runner, everything on, beside the same loop by hand: processes in turn, so that
// what else the machine does meets both. Prints a line a round, then medians and their ratio.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace {

namespace fs = std::filesystem;

std::string output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot start: " + command);
  std::string text;
  char buffer[4096];
  for (std::size_t count; (count = fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, count);
  if (pclose(pipe) != 0) throw std::runtime_error("failed: " + command + "\n" + text);
  return text;
}

double through_runner(const fs::path& document, const fs::path& scratch, int workers) {
  const std::string command = std::string(TREADLE_RUNNER) + " run " + document.string() + " --json --output " +
                              scratch.string() + " --set resources.workers=" + std::to_string(workers);
  const nlohmann::json result = nlohmann::json::parse(output_of(command)).at("result");
  fs::remove_all(scratch);
  const double steps = 1600.0 * result.at("total_epochs").get<double>();
  return result.at("training_time_seconds").get<double>() * 1e6 / steps;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argument_count, char** arguments) {
  const int rounds = argument_count > 1 ? std::atoi(arguments[1]) : 7;
  const fs::path own = fs::canonical("/proc/self/exe").parent_path();
  const fs::path scratch = fs::temp_directory_path() / ("treadle-whole-steps-" + std::to_string(std::rand()));
  const fs::path document = fs::path(TREADLE_DOCUMENTS) / "mlp_small.json";
  std::vector<double> bare;
  std::vector<double> one;
  std::vector<double> two;
  std::printf("mlp-small, microseconds per step\nround      bare  runner, 1 worker  runner, 2 workers\n");
  for (int round = 1; round <= rounds; ++round) {
    bare.push_back(std::stod(output_of((own / "bare-mlp-small").string())));
    one.push_back(through_runner(document, scratch, 1));
    two.push_back(through_runner(document, scratch, 2));
    std::printf("%5d  %8.1f  %16.1f  %17.1f\n", round, bare.back(), one.back(), two.back());
    std::fflush(stdout);
  }
  std::printf("median %8.1f  %16.1f  %17.1f\nratio  %8.2f  %16.2f  %17.2f\n", median(bare), median(one), median(two),
              1.0, median(one) / median(bare), median(two) / median(bare));
}
