#include "npy_data.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/base/path_words.h>

#include "npy_file.h"

namespace treadle::arrays {
namespace {

using Purpose = OpenRequest::Purpose;

// What a checkpoint says may have been changed.
void check_fits(const ArrayDescription& description) {
  bool fits = !description.inputs.empty() && !description.targets.empty() &&
              description.labels.size() == description.targets.size();
  for (const PortSpec& port : description.inputs) {
    const bool is_table =
        port.role == Role::kFeatures && port.shape.size() == 1 && port.shape[0] != kVaries;
    fits = fits && (port.role == Role::kLengths || !port.shape.empty()) &&
           port.columns.size() == (is_table ? static_cast<std::size_t>(port.shape[0]) : 0);
  }
  for (std::size_t i = 0; fits && i < description.targets.size(); ++i) {
    if (description.targets[i].kind == TargetKind::kClasses)
      fits = description.labels[i].size() == description.targets[i].class_names.size();
  }
  if (!fits)
    throw StorageError("stored description of the data contradicts itself");
}

/// Moves files into another folder, and remembers what they are called.
class Moving {
 public:
  explicit Moving(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void move(Paths& paths) {
    for (std::filesystem::path& path : paths) {
      const auto [known, is_new] = names_.emplace(path.filename().string(), path);
      if (!is_new && known->second != path) {
        throw DataError(shown_path(folder_) + ": a folder cannot take the place of " +
                        shown_path(known->second) + " and " + shown_path(path) +
                        ", which have one name");
      }
      path = folder_ / path.filename();
    }
  }

 private:
  std::filesystem::path folder_;
  std::map<std::string, std::filesystem::path> names_;
};

}  // namespace

NpyData::NpyData(const Config& config)
    : options_(config), named_{config.json().at("inputs"), config.json().at("target")} {}

NpyData::~NpyData() = default;

ArrayOptions NpyData::options_in(const std::filesystem::path& folder, Purpose purpose) const {
  ArrayOptions options = options_;
  options.inputs = input_options(training_->inputs);
  Moving moving(folder);
  for (auto& [port, input] : options.inputs) {
    moving.move(input.paths);
    if (input.lengths)
      moving.move(*input.lengths);
  }
  if (purpose == Purpose::kPredict)
    return options;
  for (TargetOption& target : options.targets) {
    moving.move(target.paths);
    if (target.weights)
      moving.move(*target.weights);
  }
  for (std::optional<Paths>* paths :
       {&options.weights, &options.groups, &options.times, &options.label_ends}) {
    if (*paths)
      moving.move(**paths);
  }
  return options;
}

// Evaluating and predicting put one path in the place of "inputs": a folder with files called like
// those of the training, or, where inputs alone will do, a file.
ArrayOptions NpyData::later_options(Purpose purpose) const {
  if (named_.inputs == training_->inputs)
    return options_;
  const std::filesystem::path& first = options_.inputs.begin()->second.paths.at(0);
  std::error_code error;
  if (named_.inputs.is_string() && std::filesystem::is_directory(first, error))
    return options_in(first, purpose);
  std::set<std::string> trained;
  const std::map<std::string, InputOption> training = input_options(training_->inputs);
  for (const auto& [port, input] : training)
    trained.insert(port);
  const std::string remedy = "; name a folder that has files called like those of the training";
  ArrayOptions options = options_;
  if (trained.size() == 1 && options.inputs.size() == 1) {
    InputOption input = training.begin()->second;
    const InputOption& named = options_.inputs.begin()->second;
    if (input.lengths && !named.lengths) {
      throw DataError(shown_path(first) + ": the model needs the lengths of these rows as well" +
                      remedy);
    }
    input.paths = named.paths;
    input.lengths = named.lengths;
    options.inputs = {{*trained.begin(), std::move(input)}};
  } else if (trained.size() > 1 && named_.inputs.is_string()) {
    throw DataError(shown_path(first) + ": the model has the inputs " +
                    name_list(std::vector<std::string>(trained.begin(), trained.end())) + remedy);
  }
  if (purpose == Purpose::kEvaluate && named_.target == training_->target) {
    throw DataError(shown_path(first) + ": evaluating needs the targets of these rows as well" +
                    remedy);
  }
  return options;
}

void NpyData::do_open(const OpenRequest& request) {
  const bool is_later = request.purpose != Purpose::kTrain;
  if (is_later && !description_) {
    throw ContractViolation("npy data for evaluation or prediction needs the state of a training");
  }
  const ArrayOptions options = is_later ? later_options(request.purpose) : options_;
  OpenedArrays opened = open_arrays(options, request, description_);
  description_ = std::move(opened.description);
  content_hash_ = std::move(opened.content_hash);
  if (!training_)
    training_ = named_;
  rows_.emplace(std::move(opened.rows));
}

StateDict NpyData::do_state() const {
  StateDict state;
  if (!description_)
    return state;
  DataSpec spec;
  spec.inputs = description_->inputs;
  spec.targets = description_->targets;
  state.put("spec", to_json(spec));
  state.put("labels", nlohmann::json(description_->labels));
  state.put("inputs", training_->inputs);
  state.put("target", training_->target);
  return state;
}

void NpyData::do_load_state(const StateDict& state) {
  DataSpec spec = data_spec_from_json(state.value("spec"));
  ArrayDescription description;
  description.inputs = std::move(spec.inputs);
  description.targets = std::move(spec.targets);
  TrainingFiles files{state.value("inputs"), state.value("target")};
  try {
    description.labels = state.value("labels").get<std::vector<std::vector<std::int64_t>>>();
    const auto lengths =
        std::count_if(description.inputs.begin(), description.inputs.end(),
                      [](const PortSpec& port) { return port.role == Role::kLengths; });
    if (input_options(files.inputs).size() + static_cast<std::size_t>(lengths) !=
        description.inputs.size())
      throw StorageError("stored description of the data contradicts itself");
  } catch (const nlohmann::json::exception& error) {
    throw StorageError(std::string("stored description of the data cannot be read: ") +
                       error.what());
  }
  check_fits(description);
  description_ = std::move(description);
  training_ = std::move(files);
}

void* NpyData::do_ask(std::string_view interface_id) {
  if (interface_id == RowReader::kInterface && rows_)
    return static_cast<RowReader*>(&*rows_);
  return nullptr;
}

}  // namespace treadle::arrays
