#include <treadle/engine/training_step.h>

#include <cmath>
#include <exception>
#include <functional>
#include <string>

#include <c10/core/GradMode.h>
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>

#include <treadle/base/error.h>
#include <treadle/base/random.h>
#include <treadle/core/logged_values.h>
#include <treadle/tensor/device_streams.h>
#include <treadle/tensor/task_random.h>

#include "grouped_update.h"
#include "step_numbers.h"

namespace treadle::engine {
namespace flow = oneapi::tbb::flow;
namespace {

std::string shard_name(std::size_t index) {
  return "shard-" + std::to_string(index);
}

/// Divides a sum over a large arena among the workers.
void in_ranges(std::int64_t size, const std::function<void(std::int64_t, std::int64_t)>& sum) {
  constexpr std::int64_t kGrain = std::int64_t{1} << 15;  // a worker takes longer to wake for less
  if (size < 2 * kGrain)
    return sum(0, size);
  // Isolated: who waits here must not pick up other work, such as another training.
  oneapi::tbb::this_task_arena::isolate([&] {
    oneapi::tbb::parallel_for(
        oneapi::tbb::blocked_range<std::int64_t>(0, size, kGrain),
        [&](const auto& range) { sum(range.begin(), range.end()); },
        oneapi::tbb::simple_partitioner());
  });
}

}  // namespace

/// What one shard of a step needs for itself, and what came of it.
class TrainingStep::Shard {
 public:
  Shard(const GradientTask& task, const GradientStrategy* strategy)
      : task_(task), strategy_(strategy) {
    context_.set_log(&logged);
  }

  /// For a replica, before a step: what the model has besides parameters.
  void follow(Model& model) {
    if (modules_.empty())
      pair_up(model);
    for (const auto& [its, mine] : modules_) {
      if (mine->is_training() != its->is_training())
        mine->train(its->is_training());
    }
    if (!has_buffers_)
      return;
    // Asked for anew: a module may give itself another tensor.
    const at::NoGradGuard no_gradients;
    const std::vector<at::Tensor> its_buffers = model.buffers();
    std::vector<at::Tensor> my_buffers = task_.model->buffers();
    for (std::size_t i = 0; i < my_buffers.size(); ++i)
      my_buffers[i].copy_(its_buffers[i]);
  }

  void run(const Batch& batch, std::uint64_t seed) {
    const at::AutoGradMode gradients(true);
    const TaskRandom random(seed);
    loss = {strategy_ != nullptr ? strategy_->add_gradients(task_, batch, context_)
                                 : back_propagate(task_, batch, context_),
            batch.size()};
  }

  /// How the terms of the step's loss are combined, from now on.
  void set_scales(const Objective::Scales* scales) { task_.scales = scales; }

  StateDict& model_state() { return context_.state(); }

  ShardLoss loss;  // of the step
  LoggedValues logged;

 private:
  void pair_up(Model& model) {
    // A module sets the mode of those inside it, and comes before them.
    const auto its_modules = model.modules();
    const auto my_modules = task_.model->modules();
    const std::size_t buffers = model.buffers().size();
    if (its_modules.size() != my_modules.size() || buffers != task_.model->buffers().size()) {
      throw TrainingError(
          "a replica of the model has other layers or buffers than the model; a model "
          "provider must create the same structure every time");
    }
    for (std::size_t i = 0; i < its_modules.size(); ++i)
      modules_.emplace_back(its_modules[i], my_modules[i]);
    has_buffers_ = buffers > 0;
  }

  GradientTask task_;
  const GradientStrategy* const strategy_;
  ForwardContext context_;
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, std::shared_ptr<torch::nn::Module>>>
      modules_;  // the model's, the replica's
  bool has_buffers_ = false;
};

/// start → each shard → reduce. Made once, run every step.
class TrainingStep::ShardGraph {
 public:
  ShardGraph(TrainingStep& step, const std::vector<Model*>& replicas)
      : step_(step), start_(graph_), reduce_(graph_, [this](flow::continue_msg) { reduce(); }) {
    for (Model* replica : replicas) {
      arenas_.push_back(std::make_unique<ParameterArena>(*replica, step.arena_));
      terms_.push_back(arenas_.back().get());
    }
    errors_.resize(step.shards_.size());
    for (std::size_t i = 0; i < step.shards_.size(); ++i) {
      nodes_.push_back(std::make_unique<Node>(graph_, [this, i](flow::continue_msg) { run(i); }));
      flow::make_edge(start_, *nodes_.back());
      flow::make_edge(*nodes_.back(), reduce_);
    }
  }
  ~ShardGraph() { graph_.wait_for_all(); }

  /// Afterwards the model's arena has the gradients of all shards.
  void run(Model& model, const Batch& batch, std::uint64_t seed) {
    for (std::size_t i = 0; i < arenas_.size(); ++i) {
      arenas_[i]->freeze_like(step_.arena_);
      step_.shards_[i + 1]->follow(model);
    }
    batch_ = &batch;
    seed_ = seed;
    stream_ = current_stream(step_.arena_.parameters().device());
    start_.try_put(flow::continue_msg());
    graph_.wait_for_all();
    for (std::exception_ptr& error : errors_) {
      if (!error)
        continue;
      const std::exception_ptr first = error;
      errors_.assign(errors_.size(), nullptr);
      std::rethrow_exception(first);
    }
  }

 private:
  using Node = flow::continue_node<flow::continue_msg>;

  /// On any worker.
  void run(std::size_t index) noexcept {
    try {
      const StreamScope on_stream(stream_);
      Shard& shard = *step_.shards_[index];
      ParameterArena& arena = index == 0 ? step_.arena_ : *arenas_[index - 1];
      const auto count = static_cast<std::int64_t>(step_.shards_.size());
      const auto place = static_cast<std::int64_t>(index);
      const std::int64_t begin = batch_->size() * place / count;
      const std::int64_t end = batch_->size() * (place + 1) / count;
      arena.zero_gradients();
      shard.loss = {};
      if (begin < end) {
        const std::uint64_t seed =
            index == 0 ? seed_
                       : RandomStreams(seed_).seed("shard", {static_cast<std::uint64_t>(index)});
        shard.run(batch_->slice(begin, end - begin), seed);
      }
      arena.collect();
    } catch (...) {
      errors_[index] = std::current_exception();
    }
  }

  void reduce() noexcept {
    for (const std::exception_ptr& error : errors_) {
      if (error)
        return;
    }
    try {
      const StreamScope on_stream(stream_);
      const Timeline::Span span(step_.timeline_, Phase::kUpdate);
      step_.arena_.add_gradients(terms_, in_ranges);
    } catch (...) {
      errors_.front() = std::current_exception();
    }
  }

  TrainingStep& step_;
  std::vector<std::unique_ptr<ParameterArena>> arenas_;  // of the replicas
  std::vector<const ParameterArena*> terms_;
  std::vector<std::exception_ptr> errors_;
  const Batch* batch_ = nullptr;
  std::uint64_t seed_ = 0;
  c10::Stream stream_ = current_stream(c10::kCPU);  // of the training thread

  flow::graph graph_;
  flow::broadcast_node<flow::continue_msg> start_;
  std::vector<std::unique_ptr<Node>> nodes_;
  Node reduce_;
};

TrainingStep::TrainingStep(Model& model, const Objective& objective, const Optimizer& optimizer,
                           StepOptions options)
    : model_(model),
      objective_(objective),
      timeline_(options.timeline),
      arena_(model),
      update_(std::make_unique<GroupedUpdate>(arena_, optimizer, options.groups, options.path)) {
  const StepNumbersSetup numbers{objective, arena_, *update_, options.clipping, options.timeline};
  const bool on_host =
      arena_.parameters().is_cpu() && options.path == ParameterView::Path::kFastest;
  numbers_ = on_host ? numbers_on_host(numbers) : numbers_on_device(numbers);
  const auto add_shard = [&](Model* its) {
    shards_.push_back(std::make_unique<Shard>(
        GradientTask{its, &objective, nullptr, options.timeline}, options.gradients));
  };
  add_shard(&model);
  for (Model* replica : options.replicas)
    add_shard(replica);
  if (!options.replicas.empty())
    graph_ = std::make_unique<ShardGraph>(*this, options.replicas);
}

TrainingStep::~TrainingStep() = default;

StateDict TrainingStep::model_state() const {
  StateDict all;
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    const StateDict& of_shard = shards_[i]->model_state();
    if (!of_shard.empty())
      all.put(shard_name(i), of_shard);
  }
  return all;
}

void TrainingStep::set_model_state(const StateDict& state) {
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    const std::string name = shard_name(i);
    shards_[i]->model_state() =
        state.has_part(name) ? state.part(name).to(arena_.parameters().device()) : StateDict();
  }
}

std::vector<MetricValue> TrainingStep::logged_means() const {
  LoggedValues all;
  for (const auto& shard : shards_)
    all.add(shard->logged);
  std::vector<MetricValue> means = all.means();
  const std::vector<MetricValue> terms = record().totals.terms();
  means.insert(means.end(), terms.begin(), terms.end());
  return means;
}

StateDict TrainingStep::sums() const {
  const StepRecord& now = record();
  StateDict all;
  all.put("loss", now.totals.state());
  all.put_number("gradient_norms", now.sum_of_norms);
  all.put("steps", nlohmann::json(now.norms));
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    if (!shards_[i]->logged.empty())
      all.put(shard_name(i), shards_[i]->logged.state());
  }
  return all;
}

void TrainingStep::set_sums(const StateDict& sums, std::int64_t skipped,
                            std::int64_t skipped_in_a_row) {
  StepRecord saved(objective_);
  saved.totals.load_state(sums.part("loss"));
  saved.sum_of_norms = sums.number("gradient_norms");
  saved.norms = sums.value("steps").get<std::int64_t>();
  saved.skipped = skipped;
  saved.skipped_in_a_row = skipped_in_a_row;
  numbers_->set(saved);
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    const std::string name = shard_name(i);
    shards_[i]->logged.load_state(sums.has_part(name) ? sums.part(name) : StateDict());
  }
}

std::size_t TrainingStep::shards() const {
  return shards_.size();
}

Stateful& TrainingStep::slots() {
  return *update_;
}

void StepRecord::clear() {
  totals.clear();
  batch.clear();
  gradient_norm = sum_of_norms = 0;
  norms = skipped = 0;
}

const StepRecord& TrainingStep::record() const {
  return numbers_->read();
}

bool TrainingStep::is_read_at_once() const {
  return numbers_->is_read_at_once();
}

const at::Tensor& TrainingStep::last_skip() const {
  return numbers_->skip();
}

void TrainingStep::tolerate_skipped(std::int64_t most_in_a_row) {
  numbers_->tolerate(most_in_a_row);
}

void TrainingStep::measure(Measured measured) {
  numbers_->measure(measured);
}

void TrainingStep::clear_totals() {
  numbers_->clear();
  for (const auto& shard : shards_)
    shard->logged.clear();
}

double TrainingStep::mean_gradient_norm() const {
  const StepRecord& now = record();
  return now.norms > 0 ? now.sum_of_norms / static_cast<double>(now.norms) : 0.0;
}

bool TrainingStep::run(const Batch& batch, std::int64_t step, double learning_rate,
                       std::uint64_t seed) {
  const Objective::Scales scales(objective_, batch);
  for (const auto& shard : shards_)
    shard->set_scales(&scales);
  if (graph_) {
    graph_->run(model_, batch, seed);
  } else {
    arena_.zero_gradients();
    shards_.front()->run(batch, seed);
    arena_.collect();
  }
  losses_.clear();
  for (const auto& shard : shards_)
    losses_.push_back(std::move(shard->loss));
  if (timeline_ != nullptr)
    timeline_->count_rows(batch.size());
  return numbers_->finish(losses_, step, learning_rate);
}

}  // namespace treadle::engine
