// A component of each kind that does what another does, and fails where a test wants it to: every
// node of every graph of a run calls one of them.
#include <memory>
#include <optional>

#include <c10/core/GradMode.h>

#include <treadle/core/components/plugin_registry.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/core/data/row_reader.h>
#include <treadle/core/data/transform.h>
#include <treadle/core/history/run_observer.h>
#include <treadle/core/model/model.h>
#include <treadle/core/training/gradient_strategy.h>
#include <treadle/core/training/learning_rate_schedule.h>
#include <treadle/core/training/loss.h>
#include <treadle/core/training/optimizer.h>
#include <treadle/core/validation/cross_validator.h>
#include <treadle/core/validation/metric_computer.h>
#include <treadle/plugin.h>

#include "fault_hook.h"

namespace {

using namespace treadle;

FaultHook hook;

void at_place(std::string_view place) {
  if (hook.at)
    hook.at(place);
}

/// Who does the work.
template <typename Interface>
class Inner {
 public:
  Inner(const Config& config, const ComponentContext& context)
      : inner_(make_nested<Interface>(context, config, "inner")) {}

 protected:
  Interface& inner() const { return *inner_; }

 private:
  std::unique_ptr<Interface> inner_;
};

class FaultyRows final : public RowReader {
 public:
  explicit FaultyRows(const RowReader& inner) : inner_(inner) {}

 private:
  const DataSpec& do_spec() const override { return inner_.spec(); }
  std::int64_t do_rows() const override { return inner_.rows(); }
  void do_gather(std::span<const std::int64_t> rows, Batch& out) const override {
    at_place("data.gather");
    inner_.gather(rows, out);
  }
  at::Tensor do_targets(std::size_t target) const override {
    at_place("data.targets");
    return inner_.targets(target);
  }

  const RowReader& inner_;
};

class FaultyData final : public DataProvider, Inner<DataProvider> {
 public:
  using Inner<DataProvider>::Inner;

 private:
  void do_open(const OpenRequest& request) override {
    at_place("data.open");
    inner().open(request);
    rows_.emplace(*inner().ask<RowReader>());
  }
  const DataSpec& do_spec() const override { return inner().spec(); }
  std::string do_content_hash() const override {
    at_place("data.content_hash");
    return inner().content_hash();
  }
  StateDict do_state() const override {
    at_place("data.state");
    return inner().state();
  }
  void do_load_state(const StateDict& state) override { inner().load_state(state); }
  void* do_ask(std::string_view interface_id) override {
    return interface_id == RowReader::kInterface ? static_cast<RowReader*>(&*rows_) : nullptr;
  }

  std::optional<FaultyRows> rows_;
};

class FaultyTransform final : public Transform, Inner<Transform> {
 public:
  using Inner::Inner;

 private:
  void do_fit(const RowReader& reader, const RowList& rows) override {
    at_place("transform.fit");
    inner().fit(reader, rows);
  }
  DataSpec do_output_spec(const DataSpec& before) const override {
    at_place("transform.output_spec");
    return inner().output_spec(before);
  }
  void do_apply(Batch& batch, const ApplyContext& context) const override {
    at_place("transform.apply");
    inner().apply(batch, context);
  }
  at::Tensor do_invert(const at::Tensor& predictions, std::string_view target) const override {
    return inner().invert(predictions, target);
  }
  StateDict do_state() const override {
    at_place("transform.state");
    return inner().state();
  }
  void do_load_state(const StateDict& state) override { inner().load_state(state); }
};

class FaultyNet final : public Model {
 public:
  explicit FaultyNet(std::shared_ptr<Model> inner)
      : inner_(register_module("inner", std::move(inner))) {}

  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext& context) override {
    at_place(is_training() ? "model.forward" : "model.evaluate");
    (*inner_)(inputs, outputs, context);
    if (c10::GradMode::is_enabled()) {
      outputs[0].register_hook([](const at::Tensor&) { at_place("model.backward"); });
    }
  }

 private:
  std::shared_ptr<Model> inner_;
};

class FaultyModel final : public ModelProvider, Inner<ModelProvider> {
 public:
  using Inner::Inner;

 private:
  std::shared_ptr<Model> do_create(const ModelSpec& spec) const override {
    at_place("model.create");
    return std::make_shared<FaultyNet>(inner().create(spec));
  }
};

class FaultyLoss final : public Loss, Inner<Loss> {
 public:
  using Inner::Inner;

 private:
  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override {
    at_place("loss.outputs_for");
    return inner().outputs_for(target);
  }
  LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                       const TargetBatch& target) const override {
    at_place("loss.forward");
    return inner().forward(outputs, target);
  }
  Prediction do_prediction(const std::vector<at::Tensor>& outputs) const override {
    at_place("loss.prediction");
    return inner().prediction(outputs);
  }
};

class FaultyOptimizer final : public Optimizer, Inner<Optimizer> {
 public:
  using Inner::Inner;

 private:
  double do_learning_rate() const override { return inner().learning_rate(); }
  std::vector<SlotSpec> do_slots() const override {
    at_place("optimizer.slots");
    return inner().slots();
  }
  void do_update(ParameterView& view) const override {
    at_place("optimizer.update");
    inner().update(view);
  }
};

class FaultySchedule final : public LearningRateSchedule, Inner<LearningRateSchedule> {
 public:
  using Inner::Inner;

 private:
  void* do_ask(std::string_view interface_id) override {
    return interface_id == FaultHook::kInterface ? &hook : nullptr;
  }
  double do_rate_at(std::int64_t step, const ScheduleSpan& span) const override {
    at_place("schedule.rate_at");
    return inner().rate_at(step, span);
  }
};

class FaultyGradients final : public GradientStrategy, Inner<GradientStrategy> {
 public:
  using Inner::Inner;

 private:
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    at_place("gradients.add_gradients");
    return inner().add_gradients(task, batch, context);
  }
};

class FaultyMetric final : public MetricComputer, Inner<MetricComputer> {
 public:
  using Inner::Inner;

 private:
  void do_start(const TargetSpec& target) override {
    at_place("metric.start");
    inner().start(target);
  }
  void do_reset() override {
    at_place("metric.reset");
    inner().reset();
  }
  void do_update(const Prediction& prediction, const TargetBatch& target) override {
    at_place("metric.update");
    inner().update(prediction, target);
  }
  void do_merge(const MetricComputer& other) override {
    at_place("metric.merge");
    inner().merge(dynamic_cast<const FaultyMetric&>(other).inner());
  }
  MetricResult do_compute() const override {
    at_place("metric.compute");
    return inner().compute();
  }
  StateDict do_state() const override {
    at_place("metric.state");
    return inner().state();
  }
  void do_load_state(const StateDict& state) override { inner().load_state(state); }
};

class FaultyValidation final : public CrossValidator, Inner<CrossValidator> {
 public:
  using Inner::Inner;

 private:
  ValidationPlan do_plan(const SplitRequest& request) const override {
    at_place("validation.plan");
    return inner().plan(request);
  }
};

class FaultyObserver final : public RunObserver {
 public:
  explicit FaultyObserver(const Config&) { at_place("observer.make"); }

 private:
  void do_run_started(const std::string&, const std::string&) override {
    at_place("observer.run_started");
  }
  void do_fit_started(const FitId&) override { at_place("observer.fit_started"); }
  void do_epoch_completed(const FitId&, const EpochSummary&) override {
    at_place("observer.epoch_completed");
  }
  void do_checkpoint_saved(const FitId&, const std::string&) override {
    at_place("observer.checkpoint_saved");
  }
  void do_fit_completed(const FitId&, const FitSummary&) override {
    at_place("observer.fit_completed");
  }
  void do_run_completed(const std::string&) override { at_place("observer.run_completed"); }
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<FaultyData>("faulty_data");
  registrar.add<FaultyTransform>("faulty_transform");
  registrar.add<FaultyModel>("faulty_model");
  registrar.add<FaultyLoss>("faulty_loss");
  registrar.add<FaultyOptimizer>("faulty_optimizer");
  registrar.add<FaultySchedule>("faulty_schedule");
  registrar.add<FaultyGradients>("faulty_gradients");
  registrar.add<FaultyMetric>("faulty_metric");
  registrar.add<FaultyValidation>("faulty_validation");
  registrar.add<FaultyObserver>("faulty_observer");
}
