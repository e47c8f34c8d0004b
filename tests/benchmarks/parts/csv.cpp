// The CSV reader: 400 000 rows of 20 numbers and a header, read as a workflow reads them. Bytes are
// counted per second of CPU time, on whichever threads.
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <string>

#include <benchmark/benchmark.h>

#include <treadle/base/config.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/host/run/runtime.h>

#include "parts.h"

namespace treadle::benchmarks {
namespace {

namespace fs = std::filesystem;

constexpr int kTableRows = 400'000;
constexpr int kTableColumns = 20;

void write_table(const fs::path& path) {
  std::ofstream file(path, std::ios::binary);
  std::string line;
  for (int c = 0; c < kTableColumns; ++c)
    line += (c == 0 ? "x" : ",x") + std::to_string(c);
  file << line << '\n';
  std::uint32_t state = 1;
  for (int r = 0; r < kTableRows; ++r) {
    line.clear();
    for (int c = 0; c < kTableColumns; ++c) {
      state = state * 1664525u + 1013904223u;
      char text[32];
      const auto end =
          std::to_chars(text, text + sizeof text, static_cast<double>(state) / (1u << 24)).ptr;
      if (c > 0)
        line += ',';
      line.append(text, end);
    }
    file << line << '\n';
  }
}

/// A table that is gone when nobody reads it any more.
class Table {
 public:
  Table()
      : path_(fs::temp_directory_path() / ("treadle-parts-" + std::to_string(getpid()) + ".csv")) {
    write_table(path_);
  }
  ~Table() { fs::remove(path_); }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void read(benchmark::State& state, const Runtime& runtime) {
  static const Table kTable;
  for (auto _ : state) {
    const auto data = runtime.registry().make<DataProvider>(
        "csv", Config({{"path", kTable.path().string()}, {"target", "x19"}}, "/data"));
    data->open({});
  }
  // SetBytesProcessed() would count in powers of 1024.
  state.counters["bytes"] = benchmark::Counter(static_cast<double>(fs::file_size(kTable.path())),
                                               benchmark::Counter::kIsIterationInvariantRate,
                                               benchmark::Counter::OneK::kIs1000);
}

}  // namespace

void add_csv(const Runtime& runtime) {
  benchmark::RegisterBenchmark("csv/treadle",
                               [&runtime](benchmark::State& state) { read(state, runtime); })
      ->MeasureProcessCPUTime()
      ->Unit(benchmark::kMillisecond);
}

}  // namespace treadle::benchmarks
