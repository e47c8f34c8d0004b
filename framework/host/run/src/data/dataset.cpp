#include "data/dataset.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/json_text.h>
#include <treadle/base/json_words.h>
#include <treadle/core/data/abilities/source_hash.h>
#include <treadle/core/data/column_origins.h>
#include <treadle/core/data/group_names.h>
#include <treadle/core/training/loss.h>
#include <treadle/core/validation/metric_computer.h>
#include <treadle/engine/stream_rows.h>

#include "document/document_slots.h"
#include "document/training_plan.h"

// Opens the data of a run: provider -> rows, samples of rows, or the head of a stream. Opening
// happens once, before any fit; afterwards all fits read it concurrently, so nothing changes any
// more.
//
// rows_ points to whatever is split and trained on, one of three objects:
// - the provider's RowReader (random access), owned by the provider;
// - samples_, which a `sequence` component makes of that reader and which borrows it;
// - head_, a copy of the first rows of a provider that can only be read in order.
// The members are declared so that a borrower is destroyed before what it borrows.

namespace treadle::internal {
namespace {

constexpr std::pair<const char*, Task> kTasks[] = {{"auto", Task::kAuto},
                                                   {"classification", Task::kClassification},
                                                   {"regression", Task::kRegression}};

Task task_of(const std::string& word) {
  const auto found = std::find_if(std::begin(kTasks), std::end(kTasks),
                                  [&](const auto& entry) { return word == entry.first; });
  return found == std::end(kTasks) ? Task::kAuto : found->second;
}

using KindsOfTargets = std::map<std::string, std::vector<TargetKind>, std::less<>>;

/// By target, the kinds that all of these components work on. A target that has components without
/// a kind in common is not there: it is refused once its own kind is known.
template <typename Interface>
KindsOfTargets common_kinds(const Runtime& runtime, const std::vector<Config>& components) {
  KindsOfTargets common;
  for (const Config& component : components) {
    const std::vector<TargetKind> kinds =
        target_kinds(runtime.registry().describe<Interface>(name_in(component)).schema);
    if (kinds.empty())
      continue;
    const auto [of_target, is_first] =
        common.emplace(component.get_or<std::string>("target", ""), kinds);
    if (!is_first) {
      std::erase_if(of_target->second, [&](TargetKind kind) {
        return std::find(kinds.begin(), kinds.end(), kind) == kinds.end();
      });
    }
  }
  std::erase_if(common, [](const auto& of_target) { return of_target.second.empty(); });
  return common;
}

/// The numbers in a target column may be classes. Losses decide it for the provider; metrics where
/// there is none.
KindsOfTargets kinds_for_provider(const Runtime& runtime, const ResolvedWorkflow& workflow) {
  const std::vector<Config> losses = slots_of(workflow, "loss");
  KindsOfTargets kinds = common_kinds<Loss>(runtime, losses);
  std::vector<Config> metrics = slots_of(workflow, "metrics");
  std::erase_if(metrics, [&](const Config& metric) {
    const auto target = metric.get_or<std::string>("target", "");
    return std::any_of(losses.begin(), losses.end(), [&](const Config& loss) {
      const auto of_loss = loss.get_or<std::string>("target", "");
      return of_loss.empty() || target.empty() || of_loss == target;
    });
  });
  kinds.merge(common_kinds<MetricComputer>(runtime, metrics));
  return kinds;
}

/// The columns of the data that a component, and those it is made of, name in the parameters of
/// `x-treadle-source-columns` in their schemas.
template <typename Interface>
void add_columns_in_use(const Runtime& runtime, const nlohmann::json& component,
                        std::vector<std::string>& columns) {
  const nlohmann::json schema =
      runtime.registry().describe<Interface>(component.at("use").get<std::string>()).schema;
  for (const nlohmann::json& name : schema.value("x-treadle-source-columns", nlohmann::json())) {
    const auto given = component.find(name.get<std::string>());
    if (given != component.end() && given->is_string())
      columns.push_back(given->get<std::string>());
  }
  for (const auto& item : schema.at("properties").items()) {
    const nlohmann::json& property = item.value();
    const auto given = component.find(item.key());
    const bool is_such_a_slot = given != component.end() && given->is_object() &&
                                property.value("x-treadle-component", "") ==
                                    schema.at("x-treadle-interface").get<std::string>();
    if (is_such_a_slot)
      add_columns_in_use<Interface>(runtime, *given, columns);
  }
}

nlohmann::json schema_of_data(const Runtime& runtime, const nlohmann::json& component) {
  return runtime.registry().describe<DataProvider>(component.at("use").get<std::string>()).schema;
}

/// The provider that reads the file: the one of the run, or the one whose schema claims the ending
/// of its name in x-treadle-extensions, where both keep the same kind of state (x-treadle-state).
std::string reader_of(const Runtime& runtime, const std::string& own, const nlohmann::json& schema,
                      const std::string& file) {
  const std::string state = schema.value("x-treadle-state", "");
  if (state.empty() || claims_file(schema, file))
    return own;
  for (const std::string& name : runtime.registry().names<DataProvider>()) {
    const nlohmann::json other = runtime.registry().describe<DataProvider>(name).schema;
    if (other.value("x-treadle-state", "") == state && claims_file(other, file))
      return name;
  }
  return own;
}

/// `component` read by another provider: the parameters that both have stay.
nlohmann::json read_by(const Runtime& runtime, const std::string& name,
                       const nlohmann::json& component) {
  nlohmann::json other{{"use", name}};
  const nlohmann::json schema = schema_of_data(runtime, other);
  for (const auto& item : component.items()) {
    if (item.key() != "use" && schema.at("properties").contains(item.key()))
      other[item.key()] = item.value();
  }
  return other;
}

/// The value for the parameter that names the source: a file by its whole path, as a document's
/// is.
std::string source_text(const nlohmann::json& schema, const std::string& data) {
  const nlohmann::json& parameter =
      schema.at("properties").at(schema.at("x-treadle-source").get<std::string>());
  return parameter.value("x-treadle-type", "") == "path"
             ? std::filesystem::absolute(data).lexically_normal().string()
             : data;
}

/// Makes a provider, or the one it makes its rows of, read other data: a file in place of its own,
/// or the parameters of a JSON object in place of some of its own.
void give_data(const Runtime& runtime, const std::string& data, nlohmann::json& component) {
  const nlohmann::json schema = schema_of_data(runtime, component);
  const std::string source = schema.value("x-treadle-source", "");
  if (!source.empty() && schema.at("properties").at(source).contains("x-treadle-component")) {
    give_data(runtime, data, component.at(source));
    return;
  }
  if (data.starts_with('{')) {
    const nlohmann::json given = parse_json(data);
    if (!given.is_object() || (given.contains("use") && !given.at("use").is_string()))
      throw UsageError("expected a file, or parameters of the data as a JSON object, got " +
                       quote_text(data));
    if (const std::string use = given.value("use", component.at("use").get<std::string>());
        use != component.at("use")) {
      component = read_by(runtime, use, component);
    }
    component.merge_patch(given);
    return;
  }
  const std::string own = component.at("use").get<std::string>();
  if (const std::string name = reader_of(runtime, own, schema, data); name != own) {
    component = read_by(runtime, name, component);
    const nlohmann::json other = schema_of_data(runtime, component);
    component[other.at("x-treadle-source").get<std::string>()] = source_text(other, data);
    return;
  }
  if (source.empty()) {
    throw UsageError("the run's data is \"" + own +
                     "\", which does not come from a file; give the parameters that differ as a "
                     "JSON object, such as '{\"query\": \"…\"}'");
  }
  component[source] = source_text(schema, data);
}

}  // namespace

Dataset::Dataset(const Runtime& runtime, const ResolvedWorkflow& workflow) {
  open(runtime, workflow);
}

void Dataset::open(const Runtime& runtime, const ResolvedWorkflow& workflow) {
  const Config slot = workflow.slot("data");
  OpenRequest request;
  request.task = task_of(slot.get_or<std::string>("task", "auto"));
  request.seed = RandomStreams(workflow.seed).seed("data");
  request.target_kinds = kinds_for_provider(runtime, workflow);
  if (workflow.resolved.contains("validation")) {
    add_columns_in_use<CrossValidator>(runtime, workflow.resolved.at("validation"),
                                       request.columns_in_use);
  }
  provider_ = make_in<DataProvider>(runtime, slot, "data");
  provider_->open(request);
  // A provider that offers random access is never streamed.
  rows_ = source_ = provider_->ask<RowReader>();
  if (rows_ == nullptr) {
    open_stream(runtime, workflow);
  } else if (workflow.resolved.at("training").contains("shuffle_buffer")) {
    workflow.slot("training")
        .fail("shuffle_buffer",
              "has no effect: this data is read at random, so all of it is shuffled");
  } else if ((samples_ = make_samples(runtime, workflow, *rows_)) != nullptr) {
    rows_ = samples_.get();
  }
  if (source_ == nullptr)
    source_ = rows_;
  columns_ = provider_->ask<SourceColumns>();
  spec_ = rows_->spec();
  if (spec_.targets.empty())
    throw DataError("the data has no target: there is nothing to train for");
  if (const auto* const origins = provider_->ask<ColumnOrigins>())
    expect_no_answers(*rows_, *origins);
  has_guessed_task_ = request.task == Task::kAuto;
}

/// Keeps the first rows in memory: for validation, and to fit transforms on.
void Dataset::open_stream(const Runtime& runtime, const ResolvedWorkflow& workflow) {
  const TrainingPlan plan = training_plan_of(runtime, workflow);
  // A key that cannot have an effect on a stream is an error, as everywhere in documents.
  if (workflow.resolved.contains("sequence")) {
    workflow.slot("sequence")
        .fail("use",
              "samples are made of rows that can be read at random, and this "
              "data can only be read in order");
  }
  if (provider_->stream_rows() == DataProvider::kEndless && !plan.steps_per_epoch &&
      !plan.max_steps) {
    workflow.slot("training")
        .fail("steps_per_epoch",
              "the data has no end; set training.steps_per_epoch, after which the validation rows "
              "are evaluated, or training.max_steps");
  }
  // Rows that have not been read cannot be split, so the validator only gives the number of rows at
  // the beginning that validate.
  validation_rows_ =
      !workflow.resolved.contains("validation")
          ? 0
          : make_in<CrossValidator>(runtime, workflow.slot("validation"), "validation")
                ->first_rows_of_stream();
  // Beside the validation rows, one window of training rows is kept: transforms are fitted on it.
  // These rows are not taken from the training, which reads its own stream from the first training
  // row.
  const std::int64_t window =
      std::max({plan.shuffle_buffer, plan.batch_size, plan.rows_per_epoch.value_or(0)});
  engine::StreamRows stream(*provider_, window);
  const Batch rows = stream.take(validation_rows_ + window);
  if (rows.size() <= validation_rows_) {
    throw DataError("the data has " + std::to_string(rows.size()) + " rows, and the first " +
                    std::to_string(validation_rows_) +
                    " validate, so none are left to train on; keep fewer for validation");
  }
  head_ = std::make_unique<MatrixRows>(engine::matrices_of(rows, provider_->spec()));
  rows_ = head_.get();
}

// The fold's training rows are those of the head. They stand for the whole stream where rows are
// needed in memory; the batches of the training come from DocumentComponents::stream().
ValidationPlan Dataset::plan_of_stream() const {
  Fold fold;
  fold.name = "hold-out";
  fold.validation = RowList::range(0, validation_rows_);
  fold.training = RowList::range(validation_rows_, rows_->rows());
  ValidationPlan plan;
  plan.folds.push_back(std::move(fold));
  return plan;
}

EvaluatedRows Dataset::evaluated() const {
  return {rows_, source_, provider_->ask<GroupNames>()};
}

std::int64_t Dataset::row_count() const {
  return is_stream() ? provider_->stream_rows().value_or(DataProvider::kEndless) : rows_->rows();
}

void Dataset::expect_same(const ResolvedWorkflow& opened, const ResolvedWorkflow& workflow) {
  const auto value_of = [](const ResolvedWorkflow& one, const std::string& key) {
    nlohmann::json value = one.resolved.value(key, nlohmann::json());
    // The run's document has the task written out by now; a fit's document may still have "auto".
    if (value.is_object())
      value.erase("task");  // left open in one of them, perhaps
    return value;
  };
  for (const char* key : {"data", "sequence", "precision"}) {
    const nlohmann::json before = value_of(opened, key);
    const nlohmann::json now = value_of(workflow, key);
    const bool same = key == std::string_view("precision")
                          ? precision_of(opened).data() == precision_of(workflow).data()
                          : before == now;
    if (!same) {
      throw UsageError("/" + std::string(key) + " is " + now.dump() +
                       " in the document of a fit and " + before.dump() +
                       " in the run's: the data of a run is opened once, so its fits cannot "
                       "change it");
    }
  }
}

std::string source_hash_of(const DataProvider& data) {
  const auto* const source = data.ask<SourceHash>();
  return source != nullptr ? source->source_hash() : "";
}

std::unique_ptr<SampleReader> make_samples(const Runtime& runtime, const ResolvedWorkflow& workflow,
                                           const RowReader& rows) {
  if (!workflow.resolved.contains("sequence"))
    return nullptr;
  return make_in<SequenceProvider>(runtime, workflow.slot("sequence"), "sequence")->samples(rows);
}

bool claims_file(const nlohmann::json& schema, const std::string& file) {
  const nlohmann::json endings = schema.value("x-treadle-extensions", nlohmann::json::array());
  return std::any_of(endings.begin(), endings.end(), [&](const nlohmann::json& ending) {
    return file.ends_with(ending.get_ref<const std::string&>());
  });
}

std::unique_ptr<DataProvider> make_data_for(const Runtime& runtime,
                                            const ResolvedWorkflow& workflow,
                                            const std::string& data) {
  const Config slot = workflow.slot("data");
  nlohmann::json component = component_config(slot, "data").json();
  component["use"] = name_in(slot);
  give_data(runtime, data, component);
  const std::string name = component.at("use").get<std::string>();
  component.erase("use");
  // Without places of a document: the path comes from the command line, and an error must not point
  // to a line of the run's document.
  return runtime.registry().make<DataProvider>(name, Config(std::move(component), slot.pointer()));
}

}  // namespace treadle::internal
