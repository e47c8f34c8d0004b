#include "step/shard_graph.h"

#include <algorithm>

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>

#include <treadle/tensor/device_streams.h>

#include "plan/isolated.h"

namespace treadle::engine {
namespace flow = oneapi::tbb::flow;

void in_ranges(std::int64_t size, const std::function<void(std::int64_t, std::int64_t)>& sum) {
  constexpr std::int64_t kGrain = std::int64_t{1} << 15;  // a worker takes longer to wake for less
  if (size < 2 * kGrain)
    return sum(0, size);
  // A thread that waits here must not pick up other work, such as another training.
  isolated([&] {
    oneapi::tbb::parallel_for(
        oneapi::tbb::blocked_range<std::int64_t>(0, size, kGrain),
        [&](const auto& range) { sum(range.begin(), range.end()); },
        oneapi::tbb::simple_partitioner());
  });
}

ShardGraph::ShardGraph(ParameterArena& arena, const Shards& shards,
                       const std::vector<Model*>& replicas, Timeline* timeline, bool adds)
    : arena_(arena),
      shards_(shards),
      timeline_(timeline),
      adds_(adds),
      stream_(current_stream(c10::kCPU)),
      start_(graph_),
      reduce_(graph_, [this](Message) { reduce(); }) {
  for (Model* replica : replicas) {
    arenas_.push_back(std::make_unique<ParameterArena>(*replica, arena));
    terms_.push_back(arenas_.back().get());
  }
  errors_.resize(shards.size());
  for (std::size_t i = 0; i < shards.size(); ++i) {
    nodes_.push_back(std::make_unique<Node>(graph_, [this, i](Message) { run(i); }));
    flow::make_edge(start_, *nodes_.back());
    flow::make_edge(*nodes_.back(), reduce_);
  }
}

ShardGraph::~ShardGraph() {
  graph_.wait_for_all();
}

std::vector<ParameterArena*> ShardGraph::arenas() {
  std::vector<ParameterArena*> all{&arena_};
  for (const auto& arena : arenas_)
    all.push_back(arena.get());
  return all;
}

void ShardGraph::run(Model& model, const StepRows& rows) {
  for (std::size_t i = 0; i < arenas_.size(); ++i) {
    arenas_[i]->freeze_like(arena_);
    shards_[i + 1]->follow(model);
  }
  rows_ = &rows;
  stream_ = current_stream(arena_.parameters().device());
  isolated([&] { start_.try_put(Message()); });
  graph_.wait_for_all();
  for (const std::exception_ptr& error : errors_) {
    if (!error)
      continue;
    const std::exception_ptr first = error;
    errors_.assign(errors_.size(), nullptr);
    std::rethrow_exception(first);
  }
}

/// On any worker.
void ShardGraph::run(std::size_t index) noexcept {
  try {
    const StreamScope on_stream(stream_);
    ParameterArena& arena = index == 0 ? arena_ : *arenas_[index - 1];
    isolated([&] { shards_[index]->run_in(arena, rows_->shards[index]); });
  } catch (...) {
    errors_[index] = std::current_exception();
  }
}

void ShardGraph::reduce() noexcept {
  if (std::any_of(errors_.begin(), errors_.end(),
                  [](const std::exception_ptr& error) { return error != nullptr; }))
    return;
  try {
    const StreamScope on_stream(stream_);
    const Timeline::Span span(timeline_, Phase::kUpdate);
    if (adds_)
      arena_.add_gradients(terms_, in_ranges);
  } catch (...) {
    errors_.front() = std::current_exception();
  }
}

}  // namespace treadle::engine
