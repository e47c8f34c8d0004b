#include "image_data.h"

#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

namespace treadle::images {
namespace {

using Json = nlohmann::json;

// A checkpoint may have been edited.
void check_fits(const DataSpec& spec, const std::vector<std::vector<std::int64_t>>& mask_values) {
  bool fits = spec.inputs.size() == 1 && spec.inputs[0].shape.size() == 3 &&
              !spec.targets.empty() && mask_values.size() == spec.targets.size();
  for (const std::int64_t side : fits ? spec.inputs[0].shape : std::vector<std::int64_t>())
    fits = fits && side > 0;
  for (std::size_t i = 0; fits && i < spec.targets.size(); ++i) {
    const TargetSpec& target = spec.targets[i];
    fits = mask_values[i].empty() ||
           (target.kind == TargetKind::kClasses && target.shape.size() == 2 &&
            mask_values[i].size() == target.class_names.size());
    for (const std::int64_t value : mask_values[i])
      fits = fits && value >= 0 && value < 256;
  }
  if (!fits)
    throw StorageError("stored description of the images contradicts itself");
}

}  // namespace

ImageData::ImageData(const Config& config) : options_(config) {}

ImageData::~ImageData() = default;

void ImageData::do_open(const OpenRequest& request) {
  if (request.purpose != OpenRequest::Purpose::kTrain && !description_)
    throw ContractViolation("images for evaluation or prediction need the state of a training");
  OpenedImages opened = open_images(options_, request, description_);
  description_ = std::move(opened.description);
  content_hash_ = std::move(opened.content_hash);
  if (opened.rows.groups.defined())
    groups_.emplace(std::move(opened.group_names));
  rows_.emplace(std::move(opened.rows));
  source_.emplace(std::move(opened.source_hash));
  notes_.emplace(std::move(opened.skipped), opened.table.rows());
  texts_.emplace(std::move(opened.table), std::move(opened.kept));
}

std::vector<std::vector<std::string>> ImageData::Texts::do_texts(
    const std::vector<std::string>& names) const {
  std::vector<std::vector<std::string>> texts;
  for (const std::string& name : names) {
    const std::vector<std::string>& fields = table_.fields[table_.column(name)];
    std::vector<std::string>& column = texts.emplace_back();
    column.reserve(kept_.size());
    for (const std::size_t row : kept_)
      column.push_back(fields[row]);
  }
  return texts;
}

std::vector<std::string> ImageData::Notes::do_notes() const {
  if (skipped_.empty())
    return {};
  return {std::to_string(skipped_.size()) + " of " + std::to_string(images_) +
          " images cannot be decoded and are left out, the first: " + skipped_.front()};
}

StateDict ImageData::do_state() const {
  StateDict state;
  if (!description_)
    return state;
  DataSpec spec;
  spec.inputs = {{"image",
                  {description_->channels, description_->size.height, description_->size.width},
                  {},
                  Role::kImage,
                  at::kByte}};
  std::vector<std::vector<std::int64_t>> mask_values;
  for (const TargetDescription& target : description_->targets) {
    spec.targets.push_back(target.spec);
    mask_values.push_back(target.mask_values);
  }
  state.put("spec", to_json(spec));
  state.put("mask_values", Json(mask_values));
  if (!description_->groups.empty())
    state.put("groups", Json(description_->groups));
  return state;
}

void ImageData::do_load_state(const StateDict& state) {
  const DataSpec spec = data_spec_from_json(state.value("spec"));
  std::vector<std::vector<std::int64_t>> mask_values;
  std::vector<std::string> groups;
  try {
    if (state.has_value("groups"))
      groups = state.value("groups").get<std::vector<std::string>>();
    mask_values = state.value("mask_values").get<std::vector<std::vector<std::int64_t>>>();
  } catch (const Json::exception& error) {
    throw StorageError(std::string("stored description of the images cannot be read: ") +
                       error.what());
  }
  check_fits(spec, mask_values);
  ImageDescription description;
  const std::vector<std::int64_t>& shape = spec.inputs[0].shape;
  description.channels = static_cast<int>(shape[0]);
  description.size = {shape[2], shape[1]};
  for (std::size_t i = 0; i < spec.targets.size(); ++i)
    description.targets.push_back({spec.targets[i], std::move(mask_values[i])});
  description.groups = std::move(groups);
  description_ = std::move(description);
}

void* ImageData::do_ask(std::string_view interface_id) {
  if (interface_id == RowReader::kInterface && rows_)
    return static_cast<RowReader*>(&*rows_);
  if (interface_id == SourceColumns::kInterface && texts_)
    return static_cast<SourceColumns*>(&*texts_);
  if (interface_id == GroupNames::kInterface && groups_)
    return static_cast<GroupNames*>(&*groups_);
  if (interface_id == DataNotes::kInterface && notes_)
    return static_cast<DataNotes*>(&*notes_);
  if (interface_id == SourceHash::kInterface && source_)
    return static_cast<SourceHash*>(&*source_);
  return nullptr;
}

}  // namespace treadle::images
