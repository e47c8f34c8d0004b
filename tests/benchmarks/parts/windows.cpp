// Batches of 64 windows of 96 rows at random places of a mapped table of 4 000 000 x 8 float32,
// beside 64 memcpys of the same bytes from the same map.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/empty.h>
#include <benchmark/benchmark.h>

#include <treadle/base/config.h>
#include <treadle/base/random.h>
#include <treadle/core/data/abilities/contiguous_rows.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/core/data/sequence_provider.h>
#include <treadle/host/run/runtime.h>

#include "npy_bytes.h"
#include "parts.h"

namespace treadle::benchmarks {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSeriesRows = 4'000'000;
constexpr std::int64_t kSeriesColumns = 8;
constexpr std::int64_t kLookback = 96;
constexpr std::size_t kWindows = 64;

void write_array(const fs::path& path, std::int64_t columns) {
  std::vector<float> numbers(static_cast<std::size_t>(kSeriesRows * columns));
  std::uint32_t state = 1;
  for (float& number : numbers) {
    state = state * 1664525u + 1013904223u;
    number = static_cast<float>(state >> 8) / (1 << 24);
  }
  std::ofstream(path, std::ios::binary) << arrays::npy_of(
      "(" + std::to_string(kSeriesRows) + ", " + std::to_string(columns) + ")", numbers);
}

/// A series in its files, which are gone when nobody reads it any more.
class MappedSeries {
 public:
  explicit MappedSeries(const Runtime& runtime)
      : folder_(fs::temp_directory_path() / ("treadle-windows-" + std::to_string(getpid()))) {
    fs::create_directory(folder_);
    write_array(folder_ / "x.npy", kSeriesColumns);
    write_array(folder_ / "y.npy", 1);
    data_ = runtime.registry().make<DataProvider>("npy",
                                                  Config({{"inputs", (folder_ / "x.npy").string()},
                                                          {"target", (folder_ / "y.npy").string()},
                                                          {"access", "mapped"}},
                                                         "/data"));
    data_->open({});
    windows_ = runtime.registry().make<SequenceProvider>(
        "windows", Config({{"lookback", kLookback}}, "/sequence"));
    samples_ = windows_->samples(*data_->ask<RowReader>());
  }
  ~MappedSeries() { fs::remove_all(folder_); }
  MappedSeries(const MappedSeries&) = delete;
  MappedSeries& operator=(const MappedSeries&) = delete;

  const SampleReader& samples() const { return *samples_; }
  const float* table() const {
    return contiguous_rows(*data_->ask<RowReader>())->contiguous_input(0).data_ptr<float>();
  }

 private:
  fs::path folder_;
  std::unique_ptr<DataProvider> data_;
  std::unique_ptr<SequenceProvider> windows_;
  std::unique_ptr<SampleReader> samples_;
};

const MappedSeries& series(const Runtime& runtime) {
  static const MappedSeries kSeries(runtime);
  return kSeries;
}

/// The windows of the next batch.
void draw(RandomBits& bits, const SampleReader& samples, std::vector<std::int64_t>& windows) {
  for (std::int64_t& window : windows)
    window = static_cast<std::int64_t>(bits.below(static_cast<std::uint64_t>(samples.rows())));
}

void gather(benchmark::State& state, const Runtime& runtime) {
  const SampleReader& samples = series(runtime).samples();
  RandomBits bits(1);
  std::vector<std::int64_t> windows(kWindows);
  Batch batch;
  for (auto _ : state) {
    draw(bits, samples, windows);
    samples.gather(windows, batch);
    benchmark::DoNotOptimize(batch.inputs[0].data_ptr());
  }
}

void copy(benchmark::State& state, const Runtime& runtime) {
  const SampleReader& samples = series(runtime).samples();
  const float* const table = series(runtime).table();
  constexpr std::int64_t kNumbers = kLookback * kSeriesColumns;
  const at::Tensor batch = at::empty({static_cast<std::int64_t>(kWindows), kNumbers});
  RandomBits bits(1);
  std::vector<std::int64_t> windows(kWindows);
  for (auto _ : state) {
    draw(bits, samples, windows);
    float* to = batch.data_ptr<float>();
    for (const std::int64_t window : windows) {
      std::memcpy(to, table + window * kSeriesColumns, kNumbers * sizeof(float));
      to += kNumbers;
    }
    benchmark::DoNotOptimize(to);
    benchmark::ClobberMemory();
  }
}

}  // namespace

void add_windows(const Runtime& runtime) {
  benchmark::RegisterBenchmark("windows/treadle", [&runtime](benchmark::State& state) {
    gather(state, runtime);
  })->Unit(benchmark::kMicrosecond);
  benchmark::RegisterBenchmark("windows/memcpy", [&runtime](benchmark::State& state) {
    copy(state, runtime);
  })->Unit(benchmark::kMicrosecond);
}

}  // namespace treadle::benchmarks
