// A training step through workflow-runner, everything on, beside the same loop by hand: processes in turn, so that
// what else the machine does meets all of them. Prints a line a round, then medians and their ratio to the best of the loops.
//   whole-steps [rounds, default 7] [mlp-small|mlp-large, default all]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "npy_bytes.h"

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

/// One way to make the steps of a workload.
struct Way {
  std::string label;
  std::string command;
  bool by_hand;
};

struct Workload {
  std::string name;
  double steps_per_epoch;
  std::vector<Way> ways;
};

double microseconds(const Workload& workload, const Way& way) {
  const std::string text = output_of(way.command);
  if (way.by_hand) return std::stod(text);
  const nlohmann::json result = nlohmann::json::parse(text).at("result");
  return result.at("training_time_seconds").get<double>() * 1e6 /
         (workload.steps_per_epoch * result.at("total_epochs").get<double>());
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// The rows of mlp_large.json: what is in them does not matter, as nobody looks at the loss.
void write_large_data(const fs::path& folder) {
  constexpr std::size_t kRows = 40960;
  std::vector<float> inputs(kRows * 128);
  std::uint64_t state = 1;
  for (float& input : inputs) {
    state = state * 6364136223846793005U + 1442695040888963407U;  // Knuth's MMIX
    input = static_cast<float>(state >> 40) / static_cast<float>(1U << 24);
  }
  std::vector<std::int64_t> targets(kRows);
  for (std::size_t row = 0; row < kRows; ++row) targets[row] = static_cast<std::int64_t>(row % 10);
  std::ofstream(folder / "x.npy", std::ios::binary) << treadle::arrays::npy_of("(40960, 128)", inputs);
  std::ofstream(folder / "y.npy", std::ios::binary) << treadle::arrays::npy_of("(40960,)", targets);
}

void measure(const Workload& workload, int rounds, const fs::path& scratch) {
  std::vector<std::vector<double>> times(workload.ways.size());
  std::printf("%s, microseconds per step\nround ", workload.name.c_str());
  for (const Way& way : workload.ways) std::printf("  %22s", way.label.c_str());
  for (int round = 1; round <= rounds; ++round) {
    std::printf("\n%5d ", round);
    for (std::size_t i = 0; i < workload.ways.size(); ++i) {
      times[i].push_back(microseconds(workload, workload.ways[i]));
      std::printf("  %22.1f", times[i].back());
      std::fflush(stdout);
    }
    fs::remove_all(scratch / "runs");
  }
  double best_by_hand = 0;
  std::printf("\nmedian");
  for (std::size_t i = 0; i < workload.ways.size(); ++i) {
    const double middle = median(times[i]);
    std::printf("  %22.1f", middle);
    if (workload.ways[i].by_hand && (best_by_hand == 0 || middle < best_by_hand)) best_by_hand = middle;
  }
  std::printf("\nratio ");
  for (const auto& of_way : times) std::printf("  %22.2f", median(of_way) / best_by_hand);
  std::printf("\n\n");
}

}  // namespace

int main(int argument_count, char** arguments) {
  const int rounds = argument_count > 1 ? std::atoi(arguments[1]) : 7;
  const std::string only = argument_count > 2 ? arguments[2] : "";
  std::string pattern = (fs::temp_directory_path() / "treadle-whole-steps-XXXXXX").string();
  const fs::path scratch = mkdtemp(pattern.data());
  const fs::path own = fs::canonical("/proc/self/exe").parent_path();
  // at::set_num_threads() says nothing to OpenBLAS, which takes all cores for large products.
  const auto by_hand = [&](const std::string& loop, int blas_threads, const std::string& label) {
    return Way{label,
               "OPENBLAS_NUM_THREADS=" + std::to_string(blas_threads) + " " + (own / "bare-mlp").string() + " " + loop,
               true};
  };
  const auto through_runner = [&](const fs::path& document, int workers, int shards, const std::string& label) {
    return Way{label,
               std::string(TREADLE_RUNNER) + " run " + document.string() + " --json --output " +
                   (scratch / "runs").string() + " --set resources.workers=" + std::to_string(workers) +
                   " --set resources.shards=" + std::to_string(shards),
               false};
  };
  const fs::path small = fs::path(TREADLE_DOCUMENTS) / "mlp_small.json";
  const fs::path large = scratch / "mlp_large.json";
  fs::copy_file(fs::path(TREADLE_DOCUMENTS) / "mlp_large.json", large);  // its paths start where it lies
  write_large_data(scratch);
  const std::vector<Workload> workloads{
      {"mlp-small",
       1600,
       {by_hand("small", 1, "by hand"), through_runner(small, 1, 1, "runner, 1 worker"),
        through_runner(small, 2, 1, "runner, 2 workers")}},
      {"mlp-large",
       32,
       {by_hand("large", 1, "by hand"), by_hand("large", 2, "BLAS in 2 threads"),
        by_hand("large 2", 2, "all in 2 threads"),
        through_runner(large, 1, 1, "runner, 1 worker"),
        through_runner(large, 2, 2, "2 workers, 2 shards")}}};
  for (const Workload& workload : workloads) {
    if (only.empty() || only == workload.name) measure(workload, rounds, scratch);
  }
  fs::remove_all(scratch);
}
