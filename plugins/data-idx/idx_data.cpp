#include "idx_data.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/base/path_words.h>
#include <treadle/core/data/row_problems.h>

#include "idx_file.h"
#include "idx_tensor.h"

namespace treadle::idx {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Purpose = OpenRequest::Purpose;

std::string shape_text(at::IntArrayRef shape) {
  std::string text;
  for (const std::int64_t extent : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "(" + text + ")";
}

/// An array (N, height, width) has images of one channel, (N, channels, height, width) with 1, 3 or
/// 4 channels images too, (N) and (N, width) are tables, anything else is numbers.
PortSpec port_of(at::IntArrayRef shape, at::ScalarType dtype) {
  PortSpec port{"features", shape.slice(1).vec(), {}, Role::kFeatures, dtype};
  const std::size_t rank = port.shape.size();
  const bool has_channels =
      rank == 3 && (port.shape[0] == 1 || port.shape[0] == 3 || port.shape[0] == 4);
  if (rank == 2)
    port.shape.insert(port.shape.begin(), 1);
  if (rank == 2 || has_channels) {
    port.name = "image";
    port.role = Role::kImage;
  } else if (rank <= 1) {
    port.shape.resize(1, 1);
    for (std::int64_t i = 0; i < port.shape[0]; ++i)
      port.columns.push_back({"x" + std::to_string(i)});
  }
  return port;
}

/// "train-labels-idx1-ubyte.gz" for "train-images-idx3-ubyte.gz"; nothing for a file that is not
/// called so. Without the one, the other of plain and compressed.
std::optional<fs::path> labels_beside(const fs::path& inputs) {
  std::string name = inputs.filename().string();
  const auto replace = [&](std::string_view from, std::string_view to) {
    const std::size_t at = name.find(from);
    if (at != std::string::npos)
      name.replace(at, from.size(), to);
    return at != std::string::npos;
  };
  if (!replace("images", "labels"))
    return std::nullopt;
  replace("idx3", "idx1");
  const fs::path beside = inputs.parent_path() / name;
  fs::path other = beside;
  if (beside.extension() == ".gz") {
    other.replace_extension();
  } else {
    other += ".gz";
  }
  std::error_code error;
  return fs::exists(beside, error) || !fs::exists(other, error) ? beside : other;
}

TargetKind kind_of(const IdxArray& labels, const std::string& name, const OpenRequest& request) {
  if (const auto asked = request.asked_kind(name))
    return *asked;
  if (labels.header.shape.size() > 1 || !is_integer(labels.header.item))
    return TargetKind::kNumbers;
  return request.takes(name, TargetKind::kClasses) ? TargetKind::kClasses : TargetKind::kNumbers;
}

}  // namespace

IdxData::IdxData(const Config& config)
    : named_{config.get<std::string>("path"), std::nullopt},
      classes_(config.find<std::vector<std::string>>("classes")),
      max_bytes_(config.get_or<std::int64_t>("max_bytes", std::int64_t{1} << 32)) {
  if (config.has("labels"))
    named_.labels = config.get<std::string>("labels");
}

IdxData::~IdxData() = default;

// Evaluating puts another path in the place of "path", and its labels lie beside it.
fs::path IdxData::labels_file() const {
  const bool is_other_file = training_ && training_->inputs != named_.inputs;
  const bool names_labels = named_.labels && !(is_other_file && named_.labels == training_->labels);
  if (names_labels)
    return *named_.labels;
  if (const std::optional<fs::path> beside = labels_beside(named_.inputs))
    return *beside;
  throw DataError(shown_path(named_.inputs) +
                  ": name the file of its labels, \"labels\"; it is found beside a file that is "
                  "called like \"train-images-idx3-ubyte.gz\"");
}

void IdxData::read_inputs(MatrixRows::Matrices& matrices) {
  const std::string shown = shown_path(named_.inputs);
  const IdxArray array = read_idx(named_.inputs, max_bytes_);
  const auto& shape = array.header.shape;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end())
    throw DataError(shown + ": has no numbers, its shape is " + shape_text(shape));
  const at::Tensor numbers = numbers_of(array, shape.size() >= 3, shown);
  PortSpec port = port_of(shape, numbers.scalar_type());
  if (description_ && port.shape != description_->input.shape) {
    throw DataError(shown + ": rows have the shape " + shape_text(port.shape) +
                    ", but the model was trained on " + shape_text(description_->input.shape));
  }
  std::vector<std::int64_t> full{shape[0]};
  full.insert(full.end(), port.shape.begin(), port.shape.end());
  source_.emplace(hash_bytes(std::as_bytes(std::span(array.bytes))));
  matrices.inputs = {numbers.view(full)};
  matrices.spec.inputs = {std::move(port)};
  matrices.describe_row = [shown](std::int64_t row) {
    return "row " + std::to_string(row) + " of " + shown;
  };
}

void IdxData::number_classes(at::Tensor& labels, const std::string& shown) {
  auto* const values = labels.data_ptr<std::int64_t>();
  const std::int64_t count = labels.numel();
  std::vector<std::int64_t>& known = description_->labels;
  std::vector<std::string>& names = description_->target.class_names;
  const bool is_new = known.empty();
  if (is_new && classes_) {
    names = *classes_;
    for (std::size_t i = 0; i < names.size(); ++i)
      known.push_back(static_cast<std::int64_t>(i));
  } else if (is_new) {
    known.assign(values, values + count);
    std::sort(known.begin(), known.end());
    known.erase(std::unique(known.begin(), known.end()), known.end());
    for (const std::int64_t label : known)
      names.push_back(std::to_string(label));
  }
  std::map<std::int64_t, std::int64_t> numbers;
  for (std::size_t i = 0; i < known.size(); ++i)
    numbers[known[i]] = static_cast<std::int64_t>(i);
  RowProblems problems;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto found = numbers.find(values[i]);
    if (found == numbers.end()) {
      problems.add([&] {
        return shown + ": row " + std::to_string(i / (count / labels.size(0))) + ": label " +
               std::to_string(values[i]) +
               (is_new
                    ? " is none of \"classes\", which name 0 to " + std::to_string(known.size() - 1)
                    : " is not in the training data, which has " + name_list(names));
      });
      continue;
    }
    values[i] = found->second;
  }
  problems.throw_if_any();
}

void IdxData::read_labels(const OpenRequest& request, MatrixRows::Matrices& matrices) {
  const fs::path file = labels_file();
  const std::string shown = shown_path(file);
  const IdxArray array = read_idx(file, max_bytes_);
  const std::vector<std::int64_t>& shape = array.header.shape;
  if (shape[0] != matrices.inputs[0].size(0)) {
    throw DataError(shown + ": has " + std::to_string(shape[0]) + " rows, but " +
                    shown_path(named_.inputs) + " has " +
                    std::to_string(matrices.inputs[0].size(0)));
  }
  if (std::find(shape.begin(), shape.end(), 0) != shape.end())
    throw DataError(shown + ": has no numbers, its shape is " + shape_text(shape));
  const bool is_known = !description_->target.name.empty();
  const std::string name = is_known ? description_->target.name : "label";
  const TargetKind kind = is_known ? description_->target.kind : kind_of(array, name, request);
  const std::vector<std::int64_t> positions(shape.begin() + 1, shape.end());
  at::Tensor values;
  TargetSpec spec;
  switch (kind) {
    case TargetKind::kClasses:
      if (!is_integer(array.header.item)) {
        throw DataError(shown + ": has " + std::string(name_of(array.header.item)) +
                        ", and classes are integers");
      }
      values = integers_of(array);
      spec = class_target(name, {}, positions);
      break;
    case TargetKind::kNumbers:
      values = numbers_of(array, false, shown);
      spec = number_target(name);
      if (!positions.empty())
        spec.shape = positions;
      values = positions.empty() ? values.unsqueeze(1) : values;
      break;
    default:
      throw DataError(shown + ": has classes or numbers, and the loss works on " +
                      std::string(name_of(kind)));
  }
  if (is_known && spec.shape != description_->target.shape) {
    throw DataError(shown + ": rows have the shape " + shape_text(spec.shape) +
                    ", but the model was trained on " + shape_text(description_->target.shape));
  }
  if (!is_known)
    description_->target = std::move(spec);
  if (kind == TargetKind::kClasses)
    number_classes(values, shown);
  matrices.targets = {values};
  matrices.spec.targets = {description_->target};
}

void IdxData::do_open(const OpenRequest& request) {
  if (request.purpose != Purpose::kTrain && !description_)
    throw ContractViolation("idx data for evaluation or prediction needs the state of a training");
  MatrixRows::Matrices matrices;
  read_inputs(matrices);
  if (!description_)
    description_ = Description{matrices.spec.inputs[0], {}, {}};
  if (request.purpose != Purpose::kPredict)
    read_labels(request, matrices);
  rows_.emplace(std::move(matrices));
}

StateDict IdxData::do_state() const {
  StateDict state;
  if (!description_)
    return state;
  const Files& files = training_ ? *training_ : named_;
  DataSpec spec;
  spec.inputs = {description_->input};
  spec.targets = {description_->target};
  state.put("spec", to_json(spec));
  state.put("class_labels", Json(description_->labels));
  state.put("path", Json(files.inputs.string()));
  state.put("labels", files.labels ? Json(files.labels->string()) : Json());
  return state;
}

void IdxData::do_load_state(const StateDict& state) {
  const DataSpec spec = data_spec_from_json(state.value("spec"));
  Description description;
  Files files;
  try {
    description.labels = state.value("class_labels").get<std::vector<std::int64_t>>();
    files.inputs = state.value("path").get<std::string>();
    if (!state.value("labels").is_null())
      files.labels = state.value("labels").get<std::string>();
  } catch (const Json::exception& error) {
    throw StorageError(std::string("stored description of the data cannot be read: ") +
                       error.what());
  }
  const bool fits = spec.inputs.size() == 1 && spec.targets.size() == 1 &&
                    !spec.targets[0].name.empty() &&
                    (spec.targets[0].kind == TargetKind::kClasses
                         ? !description.labels.empty() &&
                               description.labels.size() == spec.targets[0].class_names.size()
                         : description.labels.empty() && !spec.targets[0].shape.empty());
  if (!fits)
    throw StorageError("stored description of the data contradicts itself");
  description.input = spec.inputs[0];
  description.target = spec.targets[0];
  description_ = std::move(description);
  training_ = std::move(files);
}

void* IdxData::do_ask(std::string_view interface_id) {
  if (interface_id == RowReader::kInterface && rows_)
    return static_cast<RowReader*>(&*rows_);
  if (interface_id == SourceHash::kInterface && rows_)
    return static_cast<SourceHash*>(&*source_);
  return nullptr;
}

}  // namespace treadle::idx
