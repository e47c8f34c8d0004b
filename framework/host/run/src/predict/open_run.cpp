#include "predict/open_run.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_text.h>
#include <treadle/core/data/group_names.h>
#include <treadle/host/run/run_folder.h>

#include "fit/cross_validation.h"
#include "fit/trained_fit.h"
#include "model/saved_model.h"

namespace treadle::internal {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using From = ComparedRows::From;

/// A file in place of the run's own data.
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
bool is_compared_by_test(const FitRows& rows, bool is_one_of_several, From from) {
  // Folds that have test rows are evaluated on them, as in result.json.
  return from == From::kTest || rows.validation.empty() ||
         (is_one_of_several && !rows.test.empty());
}

/// As Dataset::expect_same() has it.
Json what_is_opened(const ResolvedWorkflow& workflow) {
  Json asked = Json::object();
  for (const char* key : {"data", "sequence", "precision"})
    asked[key] = workflow.resolved.value(key, Json());
  return asked;
}

/// Throws a DataError: the run holds no row out.
[[noreturn]] void refuse_without_rows(const std::string& run, From from,
                                      const std::string& instead) {
  if (from == From::kTest) {
    throw DataError(run +
                    ": has no test rows; train with validation.test_fraction, or compare by the "
                    "validation rows");
  }
  throw DataError(run +
                  ": holds no rows out: its model was trained on all of them, so they cannot "
                  "measure it; " +
                  instead);
}

}  // namespace

std::shared_ptr<const Dataset> OpenData::of(const ResolvedWorkflow& workflow,
                                            const std::string& hash, const std::string& name) {
  const Json asked = what_is_opened(workflow);
  for (const Opened& one : opened_) {
    if (one.asked == asked && one.dataset->provider().content_hash() == hash)
      return one.dataset;
  }
  auto dataset = std::make_shared<const Dataset>(runtime_, workflow);
  if (dataset->provider().content_hash() != hash) {
    throw StorageError(name +
                       ": its data has changed since it was trained, so the rows that it held "
                       "out are not known; restore the data, or " +
                       instead_);
  }
  opened_.push_back({asked, dataset});
  return dataset;
}

std::vector<HeldOutPart> held_out_parts(const Runtime& runtime, const fs::path& folder,
                                        const std::shared_ptr<OwnData>& data,
                                        std::optional<From> given, const std::string& device) {
  DocumentComponents& components = data->components;
  components.make_plan();
  const std::vector<Fold>& planned = components.plan().folds;
  const bool is_tested = planned.size() == 1 && !planned.front().test.empty();
  const From from = given.value_or(is_tested ? From::kTest : From::kValidation);
  CrossValidation validation(components.plan(), components.training_plan());
  const std::size_t folds = planned.size();
  std::vector<std::string> fold_paths;
  for (std::size_t fold = 0; fold < folds; ++fold)
    fold_paths.push_back(validation.path_of(fold));
  std::vector<HeldOutPart> parts;
  for (PlannedFit& fit : validation.next().start) {
    const bool is_fold =
        std::find(fold_paths.begin(), fold_paths.end(), fit.id.path()) != fold_paths.end();
    const bool is_asked_for = from == From::kTest ? fit.is_result : is_fold;
    const bool by_test = is_compared_by_test(*fit.rows, is_fold && folds > 1, from);
    const RowList& rows = by_test ? fit.rows->test : fit.rows->validation;
    if (!is_asked_for || rows.empty())
      continue;
    if (fit.is_result) {
      parts.push_back({fit.id.path(), rows, !by_test, [&runtime, folder, device] {
                         return restored<WholeModel>(runtime, folder, device);
                       }});
    } else {
      parts.push_back({fit.id.path(), rows, !by_test, [&runtime, folder, data, fit] {
                         return std::make_unique<WholeModel>(
                             runtime, model_of_fit(data->components, fit, folder));
                       }});
    }
  }
  return parts;
}

OpenRun open_own(const Runtime& runtime, const fs::path& folder, std::optional<From> from,
                 const std::string& device, OpenData& opened) {
  OpenRun run;
  run.name = folder.string();
  run.data_hash = trained_on(folder);
  const ResolvedWorkflow workflow = read_model_document(runtime, folder, device);
  const auto data =
      std::make_shared<OwnData>(runtime, workflow, opened.of(workflow, run.data_hash, run.name));
  run.source_hash = source_hash_of(data->dataset->provider());
  run.spec = data->dataset->spec();
  run.sequence = sequence_of(workflow);
  run.parts = held_out_parts(runtime, folder, data, from, device);
  run.evaluated = data->dataset->evaluated();
  run.origins = data->dataset->provider().ask<ColumnOrigins>();
  run.data = data;
  if (run.parts.empty())
    refuse_without_rows(run.name, from.value_or(From::kValidation), opened.instead());
  return run;
}

OpenRun open_given(const Runtime& runtime, const fs::path& folder, const fs::path& file,
                   std::optional<From> from, const std::string& device, OpenData& opened) {
  const std::string own = fs::is_regular_file(folder) ? "" : trained_on(folder);
  auto data = std::make_shared<GivenData>();
  data->model = restored<WholeModel>(runtime, folder, device);
  data->provider = data->model->open(file, OpenRequest::Purpose::kEvaluate);
  if (data->provider->content_hash() == own)
    return open_own(runtime, folder, from, device, opened);
  const auto* const reader = data->provider->ask<RowReader>();
  if (reader == nullptr) {
    throw DataError(file.string() +
                    ": can only be read in order, and this needs rows that can be read at random; "
                    "use \"evaluate\" without more");
  }
  data->samples = data->model->samples_of(*reader);
  OpenRun run;
  run.name = folder.string();
  run.spec = data->model->components.data_spec();
  run.data_hash = data->provider->content_hash();
  run.source_hash = source_hash_of(*data->provider);
  run.sequence = sequence_of(data->model->components.workflow());
  const RowReader* const compared = data->samples ? data->samples.get() : reader;
  run.evaluated = {compared, reader, data->provider->ask<GroupNames>()};
  run.parts.push_back(
      {kPartOfFile, RowList::range(0, compared->rows()), false,
       [&runtime, folder, device] { return restored<WholeModel>(runtime, folder, device); }});
  run.origins = data->provider->ask<ColumnOrigins>();
  run.data = data;
  return run;
}

}  // namespace treadle::internal
