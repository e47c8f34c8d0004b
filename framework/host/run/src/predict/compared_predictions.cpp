#include <treadle/host/run/compared_predictions.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/base/json_text.h>
#include <treadle/base/json_words.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/core/data/group_names.h>
#include <treadle/core/validation/metric_computer.h>
#include <treadle/host/run/run_folder.h>

#include "components/document_components.h"
#include "data/dataset.h"
#include "fit/cross_validation.h"
#include "fit/trained_fit.h"
#include "model/prediction_pool.h"
#include "model/saved_model.h"
#include "predict/restored_model.h"

// Every run is opened as the rows that it may be compared on, in parts that have a model each
// (OpenRun). The rows that all have are compared: each part predicts its share of them.
//
// A row never meets a model that was trained on it: the rows of a part are those that the plan of
// the run kept from its training. The plan is made again from data and document, as a resumed run
// does; a run whose data has changed is refused.

namespace treadle {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using From = ComparedRows::From;

/// A model of whole batches, and all that its training fitted; or the members of an ensemble, which
/// predict in its place.
struct WholeModel : internal::RestoredModel {
  WholeModel(const Runtime& runtime, internal::SavedModel stored)
      : WholeModel(runtime, std::move(stored.members), std::move(stored.pool), std::move(stored)) {}

  void predict(const internal::EvaluatedRows& data, const RowList& rows,
               const Visit& visit_predictions) const {
    const Visit visit = [&](const Predictions& predictions, const Batch& batch) {
      visit_predictions(outputs.apply(predictions, batch), batch);
    };
    if (members_.empty()) {
      evaluate(data, rows, visit);
      return;
    }
    std::vector<at::Tensor> of_members;
    for (const auto& member : members_) {
      std::vector<at::Tensor> parts;
      member->evaluate(data, rows, [&](const Predictions& predictions, const Batch&) {
        parts.push_back(predictions.front().values.to(at::kCPU));
      });
      of_members.push_back(at::cat(parts));
    }
    const TargetKind kind = components.data_spec().targets.front().kind;
    const at::Tensor pooled = pool_(kind, of_members);
    std::int64_t done = 0;
    // Once more for the batches, which have the targets.
    members_.front()->evaluate(data, rows, [&](const Predictions&, const Batch& batch) {
      visit({{kind, pooled.narrow(0, done, batch.size())}}, batch);
      done += batch.size();
    });
  }

 private:
  WholeModel(const Runtime& runtime, std::vector<internal::SavedModel> members,
             internal::PredictionPool pool, internal::SavedModel&& stored)
      : RestoredModel(runtime, std::move(stored), Use::kWholeBatches), pool_(std::move(pool)) {
    for (internal::SavedModel& member : members)
      members_.push_back(std::make_unique<WholeModel>(runtime, std::move(member)));
  }

  std::vector<std::unique_ptr<WholeModel>> members_;
  internal::PredictionPool pool_;
};
using ModelMaker = std::function<std::unique_ptr<WholeModel>()>;

/// Rows, and the model that may predict them.
struct Part {
  RowList rows;
  bool have_validated = false;
  ModelMaker model;
};

/// A run with the data whose rows are compared.
struct OpenRun {
  std::string name;  ///< of its folder, for messages
  DataSpec spec;
  std::string data_hash;
  std::string source_hash;           // empty: not known
  Json sequence;                     ///< of its document: what a row is
  std::shared_ptr<const void> data;  ///< what `evaluated` borrows from
  internal::EvaluatedRows evaluated;
  std::vector<Part> parts;
};

/// The run's own data as its training saw it.
struct OwnData {
  OwnData(const Runtime& runtime, const ResolvedWorkflow& workflow,
          std::shared_ptr<const internal::Dataset> opened)
      : dataset(std::move(opened)), components(runtime, workflow, *dataset) {}

  std::shared_ptr<const internal::Dataset> dataset;
  internal::DocumentComponents components;
};

/// The data of runs, in memory once for those that were trained on the same.
class OpenData {
 public:
  explicit OpenData(const Runtime& runtime) : runtime_(runtime) {}

  /// The data of the run `name`, with that hash. Throws a StorageError where it has changed.
  std::shared_ptr<const internal::Dataset> of(const ResolvedWorkflow& workflow,
                                              const std::string& hash, const std::string& name) {
    const Json asked = what_is_opened(workflow);
    for (const Opened& one : opened_) {
      if (one.asked == asked && one.dataset->provider().content_hash() == hash)
        return one.dataset;
    }
    auto dataset = std::make_shared<const internal::Dataset>(runtime_, workflow);
    if (dataset->provider().content_hash() != hash) {
      throw StorageError(name +
                         ": its data has changed since it was trained, so the rows that it held "
                         "out are not known; restore the data, or compare on another file with "
                         "--data FILE");
    }
    opened_.push_back({asked, dataset});
    return dataset;
  }

 private:
  struct Opened {
    Json asked;
    std::shared_ptr<const internal::Dataset> dataset;
  };

  /// As Dataset::expect_same() has it.
  static Json what_is_opened(const ResolvedWorkflow& workflow) {
    Json asked = Json::object();
    for (const char* key : {"data", "sequence", "precision"})
      asked[key] = workflow.resolved.value(key, Json());
    return asked;
  }

  const Runtime& runtime_;
  std::vector<Opened> opened_;
};

/// A file in place of it.
struct GivenData {
  std::unique_ptr<WholeModel> model;  // that opened it
  std::unique_ptr<DataProvider> provider;
  std::unique_ptr<SampleReader> samples;
};

/// The hash of the data that a finished run was trained on.
std::string trained_on(const fs::path& folder) {
  std::ifstream file(RunFolder::result_of(folder));
  if (!file) {
    throw StorageError(folder.string() +
                       ": is not finished: it has no result.json; continue it: workflow-runner "
                       "resume " +
                       folder.string());
  }
  const Json result = parse_json(file);
  const Json::json_pointer pointer("/environment/data_hash");
  if (!result.is_object() || !result.contains(pointer) || !result.at(pointer).is_string()) {
    throw StorageError(RunFolder::result_of(folder).string() +
                       ": does not name the data of the run; restore the file from a copy");
  }
  return result.at(pointer).get<std::string>();
}

Json sequence_of(const ResolvedWorkflow& workflow) {
  return workflow.resolved.value("sequence", Json());
}

/// Whether a fit is compared on its test rows, and not on its validation rows.
bool is_compared_by_test(const internal::FitRows& rows, bool is_one_of_several, From from) {
  // Folds that have test rows are judged by them, as in result.json.
  return from == From::kTest || rows.validation.empty() ||
         (is_one_of_several && !rows.test.empty());
}

std::vector<Part> parts_of(const Runtime& runtime, const fs::path& folder,
                           const std::shared_ptr<OwnData>& data, From from,
                           const std::string& device) {
  internal::DocumentComponents& components = data->components;
  components.make_plan();
  internal::CrossValidation validation(components.plan(), components.training_plan());
  const std::size_t folds = components.plan().folds.size();
  std::vector<std::string> judged;
  for (std::size_t fold = 0; fold < folds; ++fold)
    judged.push_back(validation.path_of(fold));
  std::vector<Part> parts;
  for (internal::PlannedFit& fit : validation.next().start) {
    const bool is_fold = std::find(judged.begin(), judged.end(), fit.id.path()) != judged.end();
    const bool is_asked_for = from == From::kTest ? fit.is_result : is_fold;
    const bool by_test = is_compared_by_test(*fit.rows, is_fold && folds > 1, from);
    const RowList& rows = by_test ? fit.rows->test : fit.rows->validation;
    if (!is_asked_for || rows.empty())
      continue;
    if (fit.is_result) {
      parts.push_back({rows, !by_test, [&runtime, folder, device] {
                         return internal::restored<WholeModel>(runtime, folder, device);
                       }});
    } else {
      parts.push_back({rows, !by_test, [&runtime, folder, data, fit] {
                         return std::make_unique<WholeModel>(
                             runtime, internal::model_of_fit(data->components, fit, folder));
                       }});
    }
  }
  return parts;
}

/// Throws a DataError: the run holds no row out that could be compared.
[[noreturn]] void refuse_without_rows(const std::string& run, From from) {
  if (from == From::kTest) {
    throw DataError(run +
                    ": has no test rows; train with validation.test_fraction, or compare by the "
                    "validation rows");
  }
  throw DataError(run +
                  ": holds no rows out: its model was trained on all of them, so they cannot "
                  "measure it; compare on another file with --data FILE");
}

OpenRun open_own(const Runtime& runtime, const fs::path& folder, From from,
                 const std::string& device, OpenData& opened) {
  OpenRun run;
  run.name = folder.string();
  run.data_hash = trained_on(folder);
  const ResolvedWorkflow workflow = internal::read_model_document(runtime, folder, device);
  const auto data =
      std::make_shared<OwnData>(runtime, workflow, opened.of(workflow, run.data_hash, run.name));
  run.source_hash = internal::source_hash_of(data->dataset->provider());
  run.spec = data->dataset->spec();
  run.sequence = sequence_of(workflow);
  run.parts = parts_of(runtime, folder, data, from, device);
  run.evaluated = data->dataset->evaluated();
  run.data = data;
  if (run.parts.empty())
    refuse_without_rows(run.name, from);
  return run;
}

/// Of a file: all its rows and the run's model, or what open_own() gives where it is the run's
/// data.
OpenRun open_given(const Runtime& runtime, const fs::path& folder, const ComparedRows& rows,
                   const std::string& device, OpenData& opened) {
  const std::string own = trained_on(folder);
  auto data = std::make_shared<GivenData>();
  data->model = internal::restored<WholeModel>(runtime, folder, device);
  data->provider = data->model->open(rows.file, OpenRequest::Purpose::kEvaluate);
  if (data->provider->content_hash() == own)
    return open_own(runtime, folder, rows.from, device, opened);
  const auto* const reader = data->provider->ask<RowReader>();
  if (reader == nullptr) {
    throw DataError(rows.file.string() +
                    ": can only be read in order, and runs are compared on rows that can be read "
                    "at random; compare them by \"evaluate\"");
  }
  data->samples = data->model->samples_of(*reader);
  OpenRun run;
  run.name = folder.string();
  run.spec = data->model->components.data_spec();
  run.data_hash = data->provider->content_hash();
  run.source_hash = internal::source_hash_of(*data->provider);
  run.sequence = sequence_of(data->model->components.workflow());
  const RowReader* const compared = data->samples ? data->samples.get() : reader;
  run.evaluated = {compared, reader, data->provider->ask<GroupNames>()};
  run.parts.push_back({RowList::range(0, compared->rows()), false, [&runtime, folder, device] {
                         return internal::restored<WholeModel>(runtime, folder, device);
                       }});
  run.data = data;
  return run;
}

std::string target_text(const TargetSpec& target) {
  return quote_text(target.name) + " (" + std::string(name_of(target.kind)) + ")";
}

/// Throws a DataError unless a row means the same to both.
void expect_comparable(const OpenRun& first, const OpenRun& other) {
  const auto refuse = [&](const std::string& why) {
    throw DataError(other.name + ": cannot be compared with " + first.name + " row by row: " + why);
  };
  if (first.spec.targets.size() != other.spec.targets.size()) {
    refuse("it predicts " + std::to_string(other.spec.targets.size()) + " targets instead of " +
           std::to_string(first.spec.targets.size()));
  }
  for (std::size_t i = 0; i < first.spec.targets.size(); ++i) {
    const TargetSpec& target = first.spec.targets[i];
    const TargetSpec& its = other.spec.targets[i];
    if (target.name != its.name || target.kind != its.kind)
      refuse("it predicts " + target_text(its) + " instead of " + target_text(target));
    if (target.shape != its.shape)
      refuse("its target " + quote_text(its.name) + " has another shape");
    const std::vector<std::string>& names = target.class_names;
    if (!std::is_permutation(names.begin(), names.end(), its.class_names.begin(),
                             its.class_names.end()))
      refuse("its target " + quote_text(its.name) + " has other classes");
  }
  const bool have_one_source = !first.source_hash.empty() && first.source_hash == other.source_hash;
  if (first.data_hash != other.data_hash && !have_one_source) {
    refuse(
        "it was trained on other data, so their rows are not the same; compare them on one file "
        "with --data FILE, or train both on the same data");
  }
  if (first.sequence != other.sequence ||
      first.evaluated.rows->rows() != other.evaluated.rows->rows())
    refuse("their rows are samples that \"sequence\" makes in other ways");
}

void expect_fixed_shape(const OpenRun& run) {
  for (const TargetSpec& target : run.spec.targets) {
    if (std::find(target.shape.begin(), target.shape.end(), kVaries) != target.shape.end()) {
      throw DataError(run.name + ": target " + quote_text(target.name) +
                      " has a length that varies from row to row; runs are compared row by row on "
                      "targets of one shape");
    }
  }
}

/// A row, and the part of its run that predicts it.
struct Assigned {
  std::int64_t row;
  std::size_t part;
};

/// The rows of a run, ascending. A row in several parts belongs to the first.
std::vector<Assigned> assigned_rows(const OpenRun& run) {
  std::vector<Assigned> rows;
  for (std::size_t part = 0; part < run.parts.size(); ++part) {
    for (const std::int64_t row : run.parts[part].rows)
      rows.push_back({row, part});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Assigned& a, const Assigned& b) { return a.row < b.row; });
  rows.erase(std::unique(rows.begin(), rows.end(),
                         [](const Assigned& a, const Assigned& b) { return a.row == b.row; }),
             rows.end());
  return rows;
}

std::vector<std::int64_t> common_rows(const std::vector<std::vector<Assigned>>& runs) {
  std::vector<std::int64_t> common;
  for (const Assigned& one : runs.front())
    common.push_back(one.row);
  for (std::size_t run = 1; run < runs.size(); ++run) {
    auto next = runs[run].begin();
    std::erase_if(common, [&](std::int64_t row) {
      while (next != runs[run].end() && next->row < row)
        ++next;
      return next == runs[run].end() || next->row != row;
    });
  }
  return common;
}

/// For each of the other's classes, its number among those of `spec`; undefined where they are in
/// one order.
at::Tensor order_of_classes(const TargetSpec& spec, const TargetSpec& other) {
  if (spec.class_names == other.class_names)
    return {};
  std::vector<std::int64_t> order;
  for (const std::string& name : spec.class_names) {
    order.push_back(std::find(other.class_names.begin(), other.class_names.end(), name) -
                    other.class_names.begin());
  }
  return at::tensor(order, at::kLong);
}

/// Puts what the run predicts for `rows` at their positions, and the targets where `actual` is
/// asked for.
class Filler {
 public:
  Filler(ComparedPredictions& result, const OpenRun& run, bool with_actual)
      : result_(result), run_(run), with_actual_(with_actual) {
    for (std::size_t i = 0; i < result.targets.size(); ++i) {
      result.targets[i].predicted.emplace_back();
      orders_.push_back(order_of_classes(result.targets[i].spec, run.spec.targets[i]));
    }
  }

  void fill(const Part& part, const RowList& rows, const at::Tensor& positions) {
    const std::unique_ptr<WholeModel> model = part.model();
    std::int64_t done = 0;
    model->predict(run_.evaluated, rows, [&](const Predictions& predictions, const Batch& batch) {
      put(predictions, batch, positions.narrow(0, done, batch.size()));
      done += batch.size();
    });
  }

 private:
  void put(const Predictions& predictions, const Batch& batch, const at::Tensor& positions) {
    for (std::size_t i = 0; i < result_.targets.size(); ++i) {
      ComparedPredictions::Target& target = result_.targets[i];
      at::Tensor values = predictions[i].values.to(at::kCPU, at::kDouble);
      if (orders_[i].defined())
        values = values.index_select(-1, orders_[i]);
      copy_into(target.predicted.back(), positions, values);
      if (!with_actual_)
        continue;
      const at::Tensor actual = TargetBatch::original(batch, i, target.spec).values();
      copy_into(
          target.actual, positions,
          actual.to(at::kCPU, target.spec.kind == TargetKind::kClasses ? at::kLong : at::kDouble));
    }
  }

  void copy_into(at::Tensor& all, const at::Tensor& positions, const at::Tensor& values) const {
    if (!all.defined()) {
      std::vector<std::int64_t> sizes = values.sizes().vec();
      sizes[0] = static_cast<std::int64_t>(result_.rows.size());
      all = at::empty(sizes, values.options());
    }
    all.index_copy_(0, positions, values);
  }

  ComparedPredictions& result_;
  const OpenRun& run_;
  const bool with_actual_;
  std::vector<at::Tensor> orders_;
};

/// Predicts the common rows with the parts of a run that they belong to.
void predict_common(const OpenRun& run, const std::vector<Assigned>& assigned, bool is_first,
                    ComparedPredictions& result) {
  std::vector<std::vector<std::int64_t>> rows(run.parts.size());
  std::vector<std::vector<std::int64_t>> positions(run.parts.size());
  auto next = assigned.begin();
  std::int64_t position = 0;
  for (const std::int64_t row : result.rows) {
    while (next->row < row)
      ++next;
    rows[next->part].push_back(row);
    positions[next->part].push_back(position++);
  }
  Filler filler(result, run, is_first);
  for (std::size_t part = 0; part < run.parts.size(); ++part) {
    if (!rows[part].empty()) {
      result.have_validated = result.have_validated || run.parts[part].have_validated;
      filler.fill(run.parts[part], RowList(std::move(rows[part])),
                  at::tensor(positions[part], at::kLong));
    }
  }
}

}  // namespace

ComparedPredictions predict_for_comparison(const Runtime& runtime, std::span<const fs::path> runs,
                                           const ComparedRows& rows, const std::string& device) {
  TREADLE_EXPECTS(runs.size() >= 2, "there are runs to compare");
  const at::NoGradGuard no_gradients;
  OpenData opened(runtime);
  std::vector<OpenRun> open;
  std::vector<std::vector<Assigned>> assigned;
  for (const fs::path& folder : runs) {
    open.push_back(rows.file.empty() ? open_own(runtime, folder, rows.from, device, opened)
                                     : open_given(runtime, folder, rows, device, opened));
    expect_fixed_shape(open.back());
    expect_comparable(open.front(), open.back());
    assigned.push_back(assigned_rows(open.back()));
  }
  ComparedPredictions result;
  for (const std::vector<Assigned>& one : assigned)
    result.candidates.push_back(static_cast<std::int64_t>(one.size()));
  result.rows = RowList(common_rows(assigned));
  if (result.rows.empty()) {
    throw DataError(
        "the runs hold no row out that is the same in all of them: their splits differ, so each "
        "row was trained on by one of them; give them one split (\"validation\": {\"seed\": 1}), "
        "or compare them on another file with --data FILE");
  }
  for (const TargetSpec& spec : open.front().spec.targets)
    result.targets.push_back({spec, {}, {}});
  for (std::size_t run = 0; run < open.size(); ++run)
    predict_common(open[run], assigned[run], run == 0, result);
  const OpenRun& first = open.front();
  result.describe = [data = first.data, reader = first.evaluated.rows](std::int64_t row) {
    return reader->describe_row(row);
  };
  return result;
}

}  // namespace treadle
