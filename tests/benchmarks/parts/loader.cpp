// Batches of 32 from a table of 1 000 000 x 20 float32, in a new order each epoch: what an
// iteration takes is a batch.
#include <numeric>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randperm.h>
#include <benchmark/benchmark.h>

#include <treadle/core/data/matrix_rows.h>
#include <treadle/engine/batch_pipeline.h>
#include <treadle/engine/thread_budget.h>

#include "parts.h"

namespace treadle::benchmarks {
namespace {

constexpr std::int64_t kMatrixRows = 1'000'000;
constexpr std::int64_t kMatrixColumns = 20;
constexpr std::int64_t kBatch = 32;

MatrixRows make_table() {
  MatrixRows::Matrices matrices;
  matrices.spec.inputs = {{"x", {kMatrixColumns}, {}}};
  for (std::int64_t i = 0; i < kMatrixColumns; ++i)
    matrices.spec.inputs[0].columns.push_back({"x" + std::to_string(i), {}, false});
  matrices.spec.targets = {number_target("y")};
  matrices.inputs = {at::rand({kMatrixRows, kMatrixColumns})};
  matrices.targets = {at::rand({kMatrixRows, 1})};
  return MatrixRows(std::move(matrices));
}

/// Made once: it takes longer than what is measured.
const MatrixRows& table() {
  static const MatrixRows kTable = make_table();
  return kTable;
}

void load_with_treadle(benchmark::State& state) {
  std::vector<std::int64_t> rows(kMatrixRows);
  std::iota(rows.begin(), rows.end(), 0);
  engine::ThreadBudget budget(static_cast<int>(state.range(0)));
  budget.run([&] {
    engine::BatchPipeline pipeline(table(), rows, {},
                                   {.batch_size = kBatch, .shuffle = true, .training = true},
                                   RandomStreams(1));
    std::int64_t epoch = 0;
    auto stream = pipeline.epoch(epoch);
    Batch batch;
    for (auto _ : state) {
      if (!stream->next(batch)) {
        stream = pipeline.epoch(++epoch);
        stream->next(batch);
      }
      benchmark::DoNotOptimize(batch.inputs[0].data_ptr());
    }
  });
}

/// As a loop by hand does it.
void load_with_index_select(benchmark::State& state) {
  at::set_num_threads(1);
  const at::Tensor inputs = table().matrices().inputs[0];
  const at::Tensor targets = table().matrices().targets.front();
  at::Tensor order = at::randperm(kMatrixRows, at::kLong);
  std::int64_t begin = 0;
  for (auto _ : state) {
    if (begin + kBatch > kMatrixRows) {
      order = at::randperm(kMatrixRows, at::kLong);
      begin = 0;
    }
    const at::Tensor rows = order.narrow(0, begin, kBatch);
    benchmark::DoNotOptimize(at::index_select(inputs, 0, rows).data_ptr());
    benchmark::DoNotOptimize(at::index_select(targets, 0, rows).data_ptr());
    begin += kBatch;
  }
}

}  // namespace

void add_loader() {
  benchmark::RegisterBenchmark("loader/treadle", load_with_treadle)
      ->ArgName("workers")
      ->Arg(1)
      ->Arg(2)
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
  benchmark::RegisterBenchmark("loader/index_select", load_with_index_select)
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

}  // namespace treadle::benchmarks
