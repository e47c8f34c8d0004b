#include "contract_cases.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/graph/flow_document.h>
#include <treadle/graph/graph.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/component/component_contract.h>
#include <treadle/testing/data/data_contract.h>
#include <treadle/testing/data/sampler_contract.h>
#include <treadle/testing/data/sequence_contract.h>
#include <treadle/testing/data/stream_contract.h>
#include <treadle/testing/data/tokenizer_contract.h>
#include <treadle/testing/data/transform_contract.h>
#include <treadle/testing/data/validation_contract.h>
#include <treadle/testing/graph/graph_contract.h>
#include <treadle/testing/model/gradients_contract.h>
#include <treadle/testing/model/layer_contract.h>
#include <treadle/testing/model/loss_contract.h>
#include <treadle/testing/model/metric_contract.h>
#include <treadle/testing/model/model_contract.h>
#include <treadle/testing/model/output_contract.h>
#include <treadle/testing/model/recording_context.h>
#include <treadle/testing/search/pruner_contract.h>
#include <treadle/testing/search/tuner_contract.h>
#include <treadle/testing/support/evaluated_rows.h>
#include <treadle/testing/support/rehearsal.h>
#include <treadle/testing/support/targets.h>
#include <treadle/testing/training/callback_contract.h>
#include <treadle/testing/training/device_contract.h>
#include <treadle/testing/training/optimizer_contract.h>
#include <treadle/testing/training/schedule_contract.h>
#include <treadle/testing/training/training_contract.h>

namespace treadle::cli {
namespace {

using namespace treadle::testing;
using nlohmann::json;
using Offer = PluginUnderTest::Offer;

ContractSubject& subject() {
  static ContractSubject subject;
  return subject;
}

/// "LossContract/mse_numbers" → "loss mse".
std::map<std::string, std::string>& components_by_case() {
  static std::map<std::string, std::string> components;
  return components;
}

std::string noted(const char* suite, const Offer& offer, const std::string& variant = "") {
  const std::string name = offer.name + (variant.empty() ? "" : "_" + variant);
  components_by_case()[std::string(suite) + "/" + name] = offer.interface_word + " " + offer.name;
  return name;
}

json parameters_of(const Offer& offer) {
  return testing::parameters_of(offer, subject().parameters);
}

/// Makes one as `T`.
template <typename T>
std::function<std::unique_ptr<T>()> maker(const Offer& offer) {
  return [offer] { return subject().plugin->make<T>(offer.name, parameters_of(offer)); };
}

/// Whether `attempt` ends without an error: what a component refuses it need not keep claims on.
template <typename Attempt>
bool works(Attempt&& attempt) {
  try {
    attempt();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

/// A case for each component of the interface that can be made: ComponentContract says why another
/// cannot.
template <typename Case, typename T, typename Complete>
std::vector<Case> one_each(const char* suite, std::string_view word, Complete&& complete) {
  std::vector<Case> cases;
  for (const Offer& offer : subject().plugin->offers()) {
    const auto make = maker<T>(offer);
    if (offer.interface_word != word || !works(make))
      continue;
    Case one;
    one.name = noted(suite, offer);
    one.make = make;
    complete(one);
    cases.push_back(std::move(one));
  }
  return cases;
}

/// A case for each of the specifications that each component accepts, or for the first of them.
template <typename Case, typename T, typename Specification, typename Accepts>
std::vector<Case> one_for_each(
    const char* suite, std::string_view word,
    const std::vector<std::pair<std::string, Specification>>& specifications, Accepts&& accepts,
    bool only_first = false) {
  std::vector<Case> cases;
  for (const Offer& offer : subject().plugin->offers()) {
    if (offer.interface_word != word)
      continue;
    for (const auto& [variant, specification] : specifications) {
      const auto make = maker<T>(offer);
      Case one;
      one.make = make;
      if (!works([&] { accepts(one, *make(), specification); }))
        continue;
      one.name = noted(suite, offer, variant);
      cases.push_back(std::move(one));
      if (only_first)
        break;
    }
  }
  return cases;
}

std::vector<ComponentCase> every_component() {
  std::vector<ComponentCase> cases;
  for (const Offer& offer : subject().plugin->offers()) {
    const std::string name = offer.interface_word + "_" + offer.name;
    components_by_case()["ComponentContract/" + name] = offer.interface_word + " " + offer.name;
    cases.push_back(
        {name,
         [offer](const json& chosen) { return subject().plugin->make_component(offer, chosen); },
         offer.schema, parameters_of(offer)});
  }
  return cases;
}

/// Of every kind, by row and by position.
std::vector<std::pair<std::string, TargetSpec>> targets() {
  return {{"numbers", testing::number_target(2)},
          {"classes", testing::class_target(3)},
          {"labels", label_target(3)},
          {"distribution", distribution_target(3)},
          {"numbers_of_positions", testing::number_target(2, {kVaries})},
          {"classes_of_positions", testing::class_target(3, {kVaries})}};
}

std::vector<LossCase> losses() {
  return one_for_each<LossCase, Loss>(
      "LossContract", "loss", targets(),
      [](LossCase& one, const Loss& loss, const TargetSpec& target) {
        loss.outputs_for(target);
        one.target = target;
      });
}

/// Accepts targets whose predictions it evaluates: one of quantiles or intervals needs more.
std::vector<MetricCase> metrics() {
  return one_for_each<MetricCase, MetricComputer>(
      "MetricContract", "metric", targets(),
      [](MetricCase& one, MetricComputer& metric, const TargetSpec& target) {
        const TaskRandom random(1);
        constexpr std::int64_t kRows = 6;
        std::vector<std::int64_t> sizes = sizes_of(kRows, target.positions());
        sizes.push_back(target.kind == TargetKind::kClasses ? target.class_count()
                                                            : target.width());
        metric.start(target);
        fit_to_training_rows(metric, target);
        const at::Tensor values = at::rand(sizes, at::kDouble);
        update(metric, evaluated_rows(target.kind, values, random_targets(target, kRows)), target);
        const MetricResult result = metric.compute();
        const bool has_value =
            std::any_of(result.values.begin(), result.values.end(),
                        [](const MetricValue& value) { return value.value.is_known(); });
        if (!has_value && result.tables.empty())
          throw DataError("it evaluates more than values");
        one.target = target;
      });
}

/// Two classes beside the rest: some decide between no more.
std::vector<OutputCase> outputs() {
  std::vector<std::pair<std::string, TargetSpec>> kinds{{"two_classes", testing::class_target(2)}};
  for (auto& one : targets())
    kinds.push_back(std::move(one));
  return one_for_each<OutputCase, OutputStage>(
      "OutputContract", "output", kinds,
      [](OutputCase& one, OutputStage& stage, const TargetSpec& target) {
        stage.start(target);
        one.target = target;
      });
}

LayerSpec layer_spec(const std::vector<std::vector<std::int64_t>>& inputs) {
  LayerSpec spec;
  spec.dtype = at::kDouble;
  spec.outputs = {{"output", {3}}};
  for (const std::vector<std::int64_t>& shape : inputs) {
    std::vector<std::int64_t> sizes{TensorSpec::kVaries};
    sizes.insert(sizes.end(), shape.begin(), shape.end());
    spec.inputs.emplace_back(std::move(sizes), at::kDouble);
  }
  return spec;
}

std::vector<at::Tensor> random_inputs(const LayerSpec& spec) {
  constexpr std::int64_t kRows = 4;
  std::vector<at::Tensor> inputs;
  for (const TensorSpec& input : spec.inputs) {
    std::vector<std::int64_t> sizes = input.sizes;
    sizes[0] = kRows;
    inputs.push_back(at::rand(sizes, at::kDouble));
  }
  return inputs;
}

using Shapes = std::vector<std::vector<std::int64_t>>;

std::vector<std::pair<std::string, Shapes>> shapes() {
  return {{"rows", {{6}}}, {"sequences", {{5, 6}}}, {"images", {{2, 6, 6}}}};
}

std::vector<LayerCase> layers() {
  return one_for_each<LayerCase, LayerFactory>(
      "LayerContract", "layer", shapes(),
      [](LayerCase& one, const LayerFactory& factory, const Shapes& inputs) {
        const TaskRandom random(1);
        const LayerSpec spec = layer_spec(inputs);
        LayerContext context;
        factory.create(spec)->forward(random_inputs(spec), context);
        one.inputs = inputs;
        one.training_differs = true;
        one.works_row_by_row = false;
        one.has_losses_of_batch = true;
        one.is_differentiable = false;
      });
}

std::vector<GraphCase> graphs() {
  return one_for_each<GraphCase, GraphBuilder>(
      "GraphContract", "graph", shapes(),
      [](GraphCase& one, const GraphBuilder& builder, const Shapes& inputs) {
        const TaskRandom random(1);
        const LayerSpec spec = layer_spec(inputs);
        const auto network =
            graph::read_steps(Config(), builder.build(spec), "", subject().plugin->registry())
                .build(spec);
        one.components = [] { return std::cref(subject().plugin->registry()); };
        one.inputs = inputs;
        one.is_whole = false;
        one.has_parameters = !network->parameters().empty();
      },
      /*only_first=*/true);  // whole networks take their time
}

std::vector<ModelCase> models() {
  return one_for_each<ModelCase, ModelProvider>(
      "ModelContract", "model",
      std::vector{std::pair(std::string("table"), ModelCase::table_spec())},
      [](ModelCase& one, const ModelProvider& provider, const ModelSpec& spec) {
        const TaskRandom random(1);
        provider.create(spec);
        one.training_differs = true;
        one.differentiable_in_inputs = false;
      });
}

std::vector<OptimizerCase> optimizers() {
  return one_each<OptimizerCase, Optimizer>("OptimizerContract", "optimizer",
                                            [](OptimizerCase&) {});
}

std::vector<ScheduleCase> schedules() {
  return one_each<ScheduleCase, LearningRateSchedule>("ScheduleContract", "schedule",
                                                      [](ScheduleCase& one) {
                                                        one.starts_at_base = false;
                                                        one.never_above_base = false;
                                                      });
}

std::vector<GradientsCase> gradients() {
  return one_each<GradientsCase, GradientStrategy>("GradientStrategyContract", "gradients",
                                                   [](GradientsCase& one) { one.exact = false; });
}

std::vector<SamplerCase> samplers() {
  return one_each<SamplerCase, Sampler>("SamplerContract", "sampler",
                                        [](SamplerCase& one) { one.each_row_once = false; });
}

/// With an image beside the table, which those of images need.
std::vector<TransformCase> transforms() {
  return one_each<TransformCase, Transform>("TransformContract", "transform",
                                            [](TransformCase& one) {
                                              one.images = true;
                                              one.bytes_within = 4;  // colors are rounded
                                            });
}

std::vector<SequenceCase> sequences() {
  return one_each<SequenceCase, SequenceProvider>("SequenceContract", "sequence",
                                                  [](SequenceCase&) {});
}

std::vector<TokenizerCase> tokenizers() {
  std::vector<TokenizerCase> cases = one_each<TokenizerCase, Tokenizer>(
      "TokenizerContract", "tokenizer",
      [](TokenizerCase& one) { one.is_exact = one.make()->is_exact(); });
  return cases;
}

/// Rows with everything that a split may ask for but columns.
SplitRequest split_request(const TargetSpec& target) {
  constexpr std::int64_t kRows = 60;
  const at::Tensor rows = at::arange(kRows, at::kLong);
  SplitRequest request;
  request.rows = kRows;
  request.targets = {target};
  request.target_values = {target.kind == TargetKind::kNumbers
                               ? rows.to(at::kFloat).view({kRows, 1})
                               : rows.remainder(target.class_count())};
  request.timestamps = rows.to(at::kDouble);
  request.groups = rows.remainder(20);
  request.random = RandomStreams(3);
  return request;
}

std::vector<ValidationCase> validators() {
  return one_for_each<ValidationCase, CrossValidator>(
      "ValidationContract", "validation",
      std::vector{std::pair(std::string("classes"), testing::class_target(3))},
      [](ValidationCase& one, const CrossValidator& validator, const TargetSpec& target) {
        validator.plan(split_request(target));
        one.takes_numbers =
            works([&] { validator.plan(split_request(testing::number_target(1))); });
      });
}

/// Loops that make no updates, or train models of their own, have tests of their own.
bool trains_any_model(const std::function<std::unique_ptr<TrainingWorkflow>()>& make) {
  return make()->needs().updates && works([&] {
           Rehearsal rehearsal(make(), {.epochs = 1});
           RecordingContext context;
           rehearsal.train(context);
         });
}

std::vector<TrainingCase> trainings() {
  std::vector<TrainingCase> cases;
  for (const Offer& offer : subject().plugin->offers()) {
    if (offer.interface_word != "training")
      continue;
    const auto make = maker<TrainingWorkflow>(offer);
    if (trains_any_model(make)) {
      cases.push_back(
          {.name = noted("TrainingContract", offer), .make = make, .may_stop_early = true});
    }
  }
  return cases;
}

/// Whether it trains without validation rows.
bool trains_alone(const std::function<std::unique_ptr<TrainingCallback>()>& make) {
  return works([&] {
    std::vector<std::unique_ptr<TrainingCallback>> callbacks;
    callbacks.push_back(make());
    Rehearsed rehearsed;
    rehearsed.has_validation = false;
    Rehearsal rehearsal(rehearsed, std::move(callbacks));
    RecordingContext context;
    rehearsal.train(context);
  });
}

std::vector<CallbackCase> callbacks() {
  return one_each<CallbackCase, TrainingCallback>(
      "CallbackContract", "callback",
      [](CallbackCase& one) { one.needs_validation = !trains_alone(one.make); });
}

std::vector<DeviceCase> devices() {
  return one_each<DeviceCase, DeviceBackend>("DeviceContract", "device", [](DeviceCase&) {});
}

std::vector<TunerCase> tuners() {
  return one_each<TunerCase, Tuner>("TunerContract", "tuner",
                                    [](TunerCase& one) { one.ends = true; });
}

std::vector<PrunerCase> pruners() {
  return one_each<PrunerCase, Pruner>("PrunerContract", "pruner", [](PrunerCase& one) {
    one.completes = false;
    one.starts_all = false;
  });
}

/// Data that can be opened as it is: of a file that the parameters name, say, or made up.
std::vector<DataCase> data(bool of_streams) {
  const auto opens = [&](const Offer& offer) {
    const auto provider = maker<DataProvider>(offer)();
    provider->open({});
    if ((provider->ask<RowReader>() == nullptr) != of_streams)
      throw UsageError("it has a contract of the other kind");
  };
  std::vector<DataCase> cases;
  for (const Offer& offer : subject().plugin->offers()) {
    if (offer.interface_word == "data" && works([&] { opens(offer); })) {
      cases.push_back({noted(of_streams ? "StreamContract" : "DataContract", offer),
                       maker<DataProvider>(offer)});
    }
  }
  return cases;
}

std::vector<StreamCase> streams() {
  std::vector<StreamCase> cases;
  for (DataCase& one : data(true))
    cases.push_back({std::move(one.name), std::move(one.make)});
  return cases;
}

}  // namespace
}  // namespace treadle::cli

namespace treadle::testing {
namespace {

#define INSTANTIATE(Suite, cases) \
  INSTANTIATE_TEST_SUITE_P(Plugin, Suite, ::testing::ValuesIn(cli::cases()), CaseName())

INSTANTIATE(ComponentContract, every_component);
INSTANTIATE(LossContract, losses);
INSTANTIATE(MetricContract, metrics);
INSTANTIATE(OutputContract, outputs);
INSTANTIATE(LayerContract, layers);
INSTANTIATE(GraphContract, graphs);
INSTANTIATE(ModelContract, models);
INSTANTIATE(OptimizerContract, optimizers);
INSTANTIATE(ScheduleContract, schedules);
INSTANTIATE(GradientStrategyContract, gradients);
INSTANTIATE(SamplerContract, samplers);
INSTANTIATE(TransformContract, transforms);
INSTANTIATE(SequenceContract, sequences);
INSTANTIATE(TokenizerContract, tokenizers);
INSTANTIATE(ValidationContract, validators);
INSTANTIATE(TrainingContract, trainings);
INSTANTIATE(CallbackContract, callbacks);
INSTANTIATE(DeviceContract, devices);
INSTANTIATE(TunerContract, tuners);
INSTANTIATE(PrunerContract, pruners);
INSTANTIATE(StreamContract, streams);

INSTANTIATE_TEST_SUITE_P(Plugin, DataContract, ::testing::ValuesIn(cli::data(false)), CaseName());

}  // namespace
}  // namespace treadle::testing

namespace treadle::cli {
namespace {

/// What a claim depends on that no component says of itself.
constexpr std::string_view kClaimsOfAuthors[] = {
    "GradientStrategyContract.GivesThoseOfBackPropagationIfItIsExact",
    "LayerContract.TrainingDiffersFromEvaluationOnlyIfItMay",
    "LossContract.StaysFiniteForSureOutputs",
    "MetricContract.DoesNotDependOnTheOrderOfRowsUnlessItSaysSo",
    "MetricContract.TakesSinglePrecision",
    "ModelContract.TrainingDiffersFromEvaluationOnlyIfItMay",
    "OptimizerContract.AGradientOfZeroOnlyDecays",
    "OptimizerContract.DecreasesAQuadratic",
    "PrunerContract.CompletesATrialThatIsAlwaysTheBest",
    "PrunerContract.PausesTrialsIfItSaysSo",
    "PrunerContract.SpendsLessOnBadTrials",
    "SamplerContract.EachRowComesOnceIfItSaysSo",
    "SamplerContract.TheSeedDecidesWhatIsRandom",
    "ScheduleContract.StartsAtTheOptimizersRate",
    "TransformContract.OnlyTrainingIsAugmentedAndItsSeedDecidesHow",
    "TransformContract.TensorOperationsAgreeWithTheLoop",
    "TunerContract.EndsOnlyIfItSaysSo",
    "TunerContract.ResultsDecideIfItLearns",
    "TunerContract.TheSeedDecidesWhatIsRandom",
    "ValidationContract.EachRowIsJudgedAsOftenAsItShould",
    "ValidationContract.SetsTestRowsAsideIfItWasAskedTo",
    "ValidationContract.TheSeedDecidesWhatIsRandom",
};

}  // namespace

void set_contract_subject(const ContractSubject& chosen) {
  subject() = chosen;
}

std::string contract_filter() {
  std::string filter = "*-";
  for (const std::string_view claim : kClaimsOfAuthors)
    filter += (filter.size() > 2 ? ":" : "") + std::string("*") + std::string(claim) + "/*";
  return filter;
}

std::string component_of_case(const std::string& suite, const std::string& name) {
  const auto found = components_by_case().find(suite + "/" + name);
  return found == components_by_case().end() ? "" : found->second;
}

}  // namespace treadle::cli
