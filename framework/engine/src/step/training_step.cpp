#include <treadle/engine/training_step.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/base/random.h>
#include <treadle/core/components/state_bytes.h>
#include <treadle/core/model/logged_values.h>
#include <treadle/core/precision/float8_scales.h>
#include <treadle/engine/device_traffic.h>
#include <treadle/engine/shard_group.h>
#include <treadle/engine/weight_average.h>
#include <treadle/tensor/device_streams.h>
#include <treadle/tensor/task_random.h>

#include "captured_steps.h"
#include "grouped_update.h"
#include "step/shard_exchange.h"
#include "step/shard_graph.h"
#include "step/step_shard.h"
#include "step/step_weights.h"
#include "step_numbers.h"

namespace treadle::engine {
namespace {

std::string shard_name(std::size_t index) {
  return "shard-" + std::to_string(index);
}

/// Of an arena on which all of them work.
std::int64_t alignment_for(const Optimizer& optimizer, const std::vector<ParameterGroup>& groups) {
  std::int64_t alignment = OptimizerSlots::alignment_of(optimizer.slots());
  for (const ParameterGroup& group : groups)
    alignment = std::max(alignment, OptimizerSlots::alignment_of(group.optimizer->slots()));
  return alignment;
}

}  // namespace

/// The step, for those who record it.
class TrainingStep::Repeated final : public CapturableStep {
 public:
  explicit Repeated(TrainingStep& step) : step_(step) {
    for (const auto& parameter : step.model_.named_parameters())
      parameters_.emplace_back(parameter.key(), parameter.value());
    modules_ = step.model_.modules(/*include_self=*/false);
  }

  void begin(const StepNumber& number) override { step_.begin(number); }
  void work(const StepRows& rows) override { step_.work(rows); }

  Memory memory() override {
    Memory all;
    const ParameterArena& arena = step_.arena_;
    for (const Segment& segment : arena.segments())
      all.emplace_back("parameter \"" + segment.name + "\"", arena.parameter(segment));
    for (const Segment& segment : arena.segments()) {
      if (arena.has_masters())
        all.emplace_back("parameter \"" + segment.name + "\" of the model",
                         arena.narrow_parameter(segment));
    }
    for (const auto& buffer : step_.model_.named_buffers())
      all.emplace_back("buffer \"" + buffer.key() + "\"", buffer.value());
    add(all, step_.update_->state());
    append(all, step_.numbers_->memory());
    if (step_.average_ != nullptr)
      append(all, step_.average_->memory());
    return all;
  }

  std::vector<ShardMemory> shards() override {
    std::vector<ShardMemory> all;
    for (const auto& shard : step_.shards_)
      all.push_back({&shard->model_state(), &shard->logged_by_step, &*shard->generators});
    return all;
  }

  std::string layout() override {
    std::string text;
    for (const auto& [name, parameter] : parameters_)
      text += parameter.requires_grad() ? '1' : '0';
    text += step_.model_.is_training() ? 't' : 'e';
    for (const auto& module : modules_)
      text += module->is_training() ? 't' : 'e';
    text += step_.is_measured_.batch_loss ? 'l' : '-';
    text += step_.is_measured_.gradient_norm ? 'n' : '-';
    return text;
  }

  std::string variant(const StepNumber& number) override {
    if (step_.average_ == nullptr || !step_.average_->is_due_after(number.step))
      return "-";
    return step_.average_->memory().empty() ? "begins an average" : "averages";
  }

 private:
  static void add(Memory& all, const StateDict& optimizer) {
    for (const auto& [name, tensor] : optimizer.tensors())
      all.emplace_back("the optimizer's \"" + name + "\"", tensor);
    for (const auto& [name, part] : optimizer.parts())
      add(all, part);
  }
  static void append(Memory& all, const Memory& more) {
    all.insert(all.end(), more.begin(), more.end());
  }

  TrainingStep& step_;
  std::vector<std::pair<std::string, at::Tensor>> parameters_;
  std::vector<std::shared_ptr<torch::nn::Module>> modules_;
};

TrainingStep::TrainingStep(Model& model, const Objective& objective, const Optimizer& optimizer,
                           StepOptions options)
    : model_(model),
      objective_(objective),
      precision_(options.precision),
      timeline_(options.timeline),
      group_(options.group),
      arena_(model, alignment_for(optimizer, options.groups)),
      update_(std::make_unique<GroupedUpdate>(arena_, optimizer, options.groups, options.path)) {
  const bool on_host =
      arena_.parameters().is_cpu() && options.path == ParameterView::Path::kFastest;
  const auto make_numbers = [&](const LossTotals& totals) {
    const StepNumbersSetup numbers{
        totals, arena_, *update_, options.clipping, precision_.scales_loss, options.timeline};
    return on_host ? numbers_on_host(numbers) : numbers_on_device(numbers);
  };
  numbers_ = make_numbers(LossTotals(objective));
  for (const std::string& loss : options.losses)
    of_losses_.emplace(loss, make_numbers(LossTotals()));
  const auto add_shard = [&](Model* its) {
    shards_.push_back(std::make_unique<StepShard>(
        GradientTask{its, &objective, nullptr, options.timeline}, options.gradients, precision_));
  };
  add_shard(&model);
  for (Model* replica : options.replicas)
    add_shard(replica);
  if (!options.replicas.empty())
    graph_ = std::make_unique<ShardGraph>(arena_, shards_, options.replicas, timeline_,
                                          group_ == nullptr);
  if (group_ != nullptr) {
    exchange_ = std::make_unique<ShardExchange>(
        *group_, model, graph_ ? graph_->arenas() : std::vector<ParameterArena*>{&arena_},
        std::max(objective.terms().size(), std::size_t{1}), in_ranges);
  }
  needs_weights_ = objective.needs_weights() || may_add_losses(model);
  number_ = std::make_unique<StepNumber>();
  if (options.capture == nullptr)
    return;
  if (group_ != nullptr) {
    why_not_captured_ = "several processes share them";
    return;
  }
  const c10::Device device = arena_.parameters().device();
  if (!options.capture->can_capture()) {
    why_not_captured_ = "the device " + device.str() + " does not record work";
    return;
  }
  for (const auto& shard : shards_)
    shard->become_repeatable(device);
  repeated_ = std::make_unique<Repeated>(*this);
  captured_ = std::make_unique<CapturedSteps>(*options.capture, device, *repeated_, timeline_);
}

TrainingStep::~TrainingStep() = default;

std::size_t TrainingStep::first_shard() const {
  return group_ == nullptr ? 0 : group_->own().first;
}

/// `own` has a part for each shard that is here; the result for each of the step.
StateDict TrainingStep::of_all_shards(StateDict own) const {
  if (group_ == nullptr)
    return own;
  for (const std::vector<std::byte>& bytes : group_->gather(bytes_of(own))) {
    const StateDict parts = state_of_bytes(bytes);
    for (const auto& [name, part] : parts.parts())
      own.put(name, part.to(device()));
  }
  return own;
}

StateDict TrainingStep::model_state() const {
  StateDict own;
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    const StateDict& of_shard = shards_[i]->model_state();
    if (!of_shard.empty())
      own.put(shard_name(first_shard() + i), of_shard);
  }
  return of_all_shards(std::move(own));
}

void TrainingStep::set_model_state(const StateDict& state) {
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    const std::string name = shard_name(first_shard() + i);
    shards_[i]->model_state() =
        state.has_part(name) ? state.part(name).to(arena_.parameters().device()) : StateDict();
  }
}

StateDict TrainingStep::logged_by_shards() const {
  StateDict own;
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    if (!shards_[i]->logged.empty())
      own.put(shard_name(first_shard() + i), shards_[i]->logged.state());
  }
  return of_all_shards(std::move(own));
}

std::vector<MetricValue> TrainingStep::logged_means() const {
  LoggedValues all;
  const StateDict logged = logged_by_shards();
  for (std::size_t i = 0; i < shards(); ++i) {
    if (!logged.has_part(shard_name(i)))
      continue;
    LoggedValues of_shard;
    of_shard.load_state(logged.part(shard_name(i)));
    all.add(of_shard);
  }
  std::vector<MetricValue> means;
  if (!all.empty()) {
    const Waiting waiting(timeline_, device());
    means = all.means();
    if (timeline_ != nullptr && !device().is_cpu()) {
      timeline_->device_use().count_fetched(
          1, static_cast<std::int64_t>(means.size() * sizeof(double)));
    }
  }
  const std::vector<MetricValue> terms = record().totals.terms();
  means.insert(means.end(), terms.begin(), terms.end());
  for (const auto& [name, numbers] : of_losses_)
    means.push_back({"loss." + name, numbers->read().totals.value(), Direction::kLowerIsBetter});
  return means;
}

namespace {

StateDict state_of(const StepRecord& record, bool scales_loss) {
  StateDict state;
  state.put("loss", record.totals.state());
  state.put_number("gradient_norms", record.sum_of_norms);
  state.put("steps", nlohmann::json(record.norms));
  state.put("skipped", nlohmann::json(record.skipped));
  state.put("skipped_at", nlohmann::json(record.skipped_at));
  state.put("skipped_in_a_row", nlohmann::json(record.skipped_in_a_row));
  if (scales_loss) {
    state.put_number("loss_scale", record.loss_scale.scale);
    state.put("good_steps", nlohmann::json(record.loss_scale.good_steps));
  }
  return state;
}

StepRecord record_of(const StateDict& state, const LossTotals& empty, bool scales_loss) {
  StepRecord record(empty);
  record.totals.load_state(state.part("loss"));
  record.sum_of_norms = state.number("gradient_norms");
  record.norms = state.value("steps").get<std::int64_t>();
  record.skipped = state.value("skipped").get<std::int64_t>();
  record.skipped_at = state.value("skipped_at").get<std::vector<std::int64_t>>();
  record.skipped_in_a_row = state.value("skipped_in_a_row").get<std::int64_t>();
  if (scales_loss) {
    record.loss_scale = {state.number("loss_scale"), state.value("good_steps").get<std::int64_t>()};
  }
  return record;
}

}  // namespace

StateDict TrainingStep::numbers() const {
  StateDict all = state_of(record(), precision_.scales_loss);
  for (const auto& [name, numbers] : of_losses_)
    all.put("loss." + name, state_of(numbers->read(), precision_.scales_loss));
  const StateDict logged = logged_by_shards();
  for (const auto& [name, of_shard] : logged.parts())
    all.put(name, of_shard);
  return all;
}

void TrainingStep::set_numbers(const StateDict& numbers) {
  numbers_->set(record_of(numbers, LossTotals(objective_), precision_.scales_loss));
  for (const auto& [name, its] : of_losses_)
    its->set(record_of(numbers.part("loss." + name), LossTotals(), precision_.scales_loss));
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    const std::string name = shard_name(first_shard() + i);
    shards_[i]->logged.load_state(numbers.has_part(name) ? numbers.part(name) : StateDict());
  }
}

std::size_t TrainingStep::shards() const {
  return group_ == nullptr ? shards_.size() : group_->shards();
}

/// As views.
StepRows TrainingStep::shards_of(Batch batch) const {
  StepRows rows{batch.size()};
  if (shards() == 1) {
    rows.shards.push_back(std::move(batch));
    return rows;
  }
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    const std::int64_t begin = StepRows::begin_of(first_shard() + i, shards(), rows.count);
    const std::int64_t end = StepRows::begin_of(first_shard() + i + 1, shards(), rows.count);
    rows.shards.push_back(batch.slice(begin, end - begin));
  }
  return rows;
}

Stateful& TrainingStep::slots() {
  return *update_;
}

void StepRecord::clear() {
  totals.clear();
  batch.clear();
  gradient_norm = sum_of_norms = 0;
  norms = skipped = 0;
  skipped_at.clear();
}

void StepRecord::note_skipped(std::int64_t step) {
  if (skipped++ < kMostListed)
    skipped_at.push_back(step);
}

const StepRecord& TrainingStep::record() const {
  return numbers_->read();
}

const StepRecord& TrainingStep::record(std::string_view loss) const {
  const auto found = of_losses_.find(loss);
  TREADLE_EXPECTS(found != of_losses_.end(), "no step has the loss \"" + std::string(loss) + "\"");
  return found->second->read();
}

StepNumbers& TrainingStep::numbers_of(const StepTask& task) const {
  if (task.loss == nullptr)
    return *numbers_;
  const auto found = of_losses_.find(task.name);
  TREADLE_EXPECTS(found != of_losses_.end(),
                  "the loss \"" + std::string(task.name) + "\" is not declared");
  return *found->second;
}

bool TrainingStep::is_read_at_once() const {
  return numbers_->is_read_at_once();
}

void TrainingStep::tolerate_skipped(std::int64_t most_in_a_row) {
  numbers_->tolerate(most_in_a_row);
  for (const auto& [name, numbers] : of_losses_)
    numbers->tolerate(most_in_a_row);
}

void TrainingStep::measure(Measured measured) {
  numbers_->measure(measured);
  for (const auto& [name, numbers] : of_losses_)
    numbers->measure(measured);
  is_measured_ = measured;
}

void TrainingStep::clear_totals() {
  numbers_->clear();
  for (const auto& [name, numbers] : of_losses_)
    numbers->clear();
  for (const auto& shard : shards_)
    shard->logged.clear();
}

double TrainingStep::mean_gradient_norm() const {
  double sum = record().sum_of_norms;
  std::int64_t count = record().norms;
  for (const auto& [name, numbers] : of_losses_) {
    sum += numbers->read().sum_of_norms;
    count += numbers->read().norms;
  }
  return count > 0 ? sum / static_cast<double>(count) : 0.0;
}

/// A scale is of all shards' values; the largest of them does not depend on an order.
void TrainingStep::advance_float8_scales() {
  Float8Scales* const scales = shards_.front()->float8_scales();
  if (scales == nullptr)
    return;
  for (std::size_t i = 1; i < shards_.size(); ++i) {
    scales->join(*shards_[i]->float8_scales());
    shards_[i]->float8_scales()->forget_step();
  }
  if (group_ != nullptr) {
    StateDict own;
    own.put("records", scales->records());
    for (const std::vector<std::byte>& bytes : group_->gather(bytes_of(own)))
      scales->join(state_of_bytes(bytes).tensor("records"));
  }
  scales->advance();
}

bool TrainingStep::run(const StepRows& rows, std::int64_t step, double learning_rate,
                       std::uint64_t seed, std::span<const double> group_rates,
                       const StepTask& task) {
  task_ = task;
  numbers_now_ = &numbers_of(task);
  if (captured_ && (task.loss != nullptr || task.parameters != nullptr)) {
    captured_.reset();
    why_not_captured_ = "the training loop has updates of several kinds";
  }
  const StepNumber number{step, learning_rate, seed, {group_rates.begin(), group_rates.end()}};
  if (timeline_ != nullptr)
    timeline_->count_rows(rows.count);
  if (!repeated_) {
    begin(number);
    return work(rows);
  }
  for (const auto& shard : shards_)
    shard->logged_by_step.clear();
  bool updated = true;
  if (!captured_ || !captured_->run(rows, number)) {
    begin(number);
    updated = work(rows);
  }
  for (const auto& shard : shards_)
    shard->logged.add(shard->logged_by_step);
  return updated;
}

void TrainingStep::begin(const StepNumber& number) {
  *number_ = number;
  numbers_now_->begin(number.step, number.rate);
  update_->set_rates(number.group_rates);
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    const std::uint64_t place = first_shard() + i;
    shards_[i]->seed(place == 0 ? number.seed : RandomStreams(number.seed).seed("shard", {place}));
  }
}

/// All of a step that a device may record.
bool TrainingStep::work(const StepRows& rows) {
  TREADLE_EXPECTS(rows.error || rows.shards.size() == shards_.size(),
                  "a step has rows for each shard that is here");
  std::exception_ptr error = rows.error;
  const Objective::Scales scales = scales_of(rows, error);
  for (const auto& shard : shards_)
    shard->set_task(task_.loss, &scales);
  run_shards(rows, error);
  advance_float8_scales();
  const bool updated = finish();
  if (task_.is_averaged && updated)
    average_after(number_->step);
  return updated;
}

/// Of several shards the weights are added in their order, wherever they are. `error`: what was
/// thrown here.
Objective::Scales TrainingStep::scales_of(const StepRows& rows, std::exception_ptr& error) {
  const bool is_objective = task_.loss == nullptr;
  Objective::Scales scales;
  std::int64_t positions = rows.count;
  if (is_objective && shards() == 1) {
    if (!error) {
      scales = Objective::Scales(objective_, rows.shards.front());
      positions = objective_.positions(rows.shards.front());
    }
  } else if (is_objective) {
    StepWeights weights;
    if (needs_weights_ || precision_.scales_loss) {
      const Timeline::Span span(group_ != nullptr ? timeline_ : nullptr, Phase::kExchange);
      weights = weights_of(objective_, rows, group_, device(), error);
      positions = weights.positions;
    }
    scales = Objective::Scales(objective_, std::move(weights.of_terms), rows.count);
  }
  if (precision_.scales_loss)
    scales.multiply(numbers_now_->scale_loss(positions));
  return scales;
}

/// Forward and backward of all shards, whose losses are then in `losses_`.
void TrainingStep::run_shards(const StepRows& rows, std::exception_ptr error) {
  try {
    if (error)
      std::rethrow_exception(error);
    if (graph_) {
      graph_->run(model_, rows);
    } else {
      shards_.front()->run_in(arena_, rows.shards.front());
    }
  } catch (...) {
    if (!exchange_)
      throw;
    error = std::current_exception();  // for the other processes as well
  }
  losses_.clear();
  for (const auto& shard : shards_)
    losses_.push_back(std::move(shard->loss));
  if (!exchange_)
    return;
  const Timeline::Span span(timeline_, Phase::kExchange);
  losses_ = exchange_->run({number_->step, losses_, error});
}

void TrainingStep::average_after(std::int64_t step) {
  if (average_ == nullptr)
    return;
  const Timeline::Span span(timeline_, Phase::kUpdate);
  average_->add_after(step, numbers_now_->skip());
}

bool TrainingStep::finish() {
  if (task_.parameters == nullptr)
    return numbers_now_->finish(losses_);
  const std::vector<bool>& updated_ones = *task_.parameters;
  TREADLE_EXPECTS(updated_ones.size() == arena_.segments().size(),
                  "there is one entry for each segment");
  for (std::size_t i = 0; i < updated_ones.size(); ++i) {
    if (!updated_ones[i])
      arena_.gradient(arena_.segments()[i]).zero_();
  }
  bool updated = false;
  arena_.with_only(updated_ones, [&] { updated = numbers_now_->finish(losses_); });
  return updated;
}

bool TrainingStep::has_evaluation_weights() const {
  return update_->has_evaluation_weights();
}

at::Tensor TrainingStep::evaluation_weights() const {
  return update_->evaluation_weights();
}

std::int64_t TrainingStep::replayed() const {
  return captured_ ? captured_->replays() : 0;
}

std::string TrainingStep::why_not_captured() const {
  return captured_ ? captured_->why_not() : why_not_captured_;
}

}  // namespace treadle::engine
