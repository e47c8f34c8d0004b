// Parts of a training alone, under Google Benchmark, with its options: --benchmark_filter=loader,
// --benchmark_repetitions=7
// --benchmark_enable_random_interleaving=true, so that what else the machine does meets peers
// alike.
#include <benchmark/benchmark.h>

#include <treadle/host/run/runtime.h>

#include "parts.h"

int main(int argument_count, char** arguments) {
  benchmark::Initialize(&argument_count, arguments);
  if (benchmark::ReportUnrecognizedArguments(argument_count, arguments))
    return 2;
  const treadle::Runtime runtime;
  treadle::benchmarks::add_loader();
  treadle::benchmarks::add_optimizers(runtime);
  treadle::benchmarks::add_csv(runtime);
  treadle::benchmarks::add_graphs(runtime);
  treadle::benchmarks::add_nodes();
  treadle::benchmarks::add_windows(runtime);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
