// Every metric and every transform in the tree, in whole runs on the far device. Metrics get
// tensors of the host: predictions have come back.
#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <treadle/base/error.h>
#include <treadle/core/data/transform.h>
#include <treadle/core/validation/metric_computer.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/component/case_name.h>

#include "far_runs.h"
#include "npy_bytes.h"

namespace treadle::testing {
namespace {

using nlohmann::json;

/// Small data of one kind, and what is trained on it.
struct FarData {
  std::string name;
  json document;
};

std::string saved(const fs::path& path, const at::Tensor& tensor) {
  arrays::RawNpy raw;
  raw.descr = tensor.scalar_type() == at::kLong   ? "<i8"
              : tensor.scalar_type() == at::kByte ? "|u1"
                                                  : "<f4";
  std::string shape = "(";
  for (const std::int64_t size : tensor.sizes())
    shape += std::to_string(size) + ", ";
  std::ofstream(path, std::ios::binary) << arrays::npy_bytes(
      raw.header(shape + ")"), {static_cast<const char*>(tensor.data_ptr()), tensor.nbytes()});
  return path.string();
}

json images_in(const fs::path& folder, at::ScalarType dtype) {
  const TaskRandom random(1);
  const at::Tensor pixels = at::randint(0, 256, {40, 2, 6, 5}, at::kLong).to(dtype);
  const std::string name = dtype == at::kByte ? "bytes.npy" : "images.npy";
  return {{"use", "npy"},
          {"inputs", {{"picture", {{"path", saved(folder / name, pixels)}, {"role", "image"}}}}},
          {"target",
           {{"kind",
             {{"path", saved(folder / "kinds.npy", at::randint(3, {40}, at::kLong))},
              {"kind", "classes"}}}}}};
}

json distributions_in(const fs::path& folder) {
  const TaskRandom random(2);
  return {{"use", "npy"},
          {"inputs", saved(folder / "x.npy", at::randn({40, 2}))},
          {"target",
           {{"soft",
             {{"path", saved(folder / "soft.npy", at::randn({40, 3}).softmax(1))},
              {"kind", "distribution"},
              {"classes", {"a", "b", "c"}}}}}}};
}

/// Numbers of which some are missing.
json gaps_in(const fs::path& folder) {
  std::ofstream file(folder / "gaps.csv");
  file << "size,weight,price\n";
  for (int i = 0; i < 40; ++i)
    file << (i % 7 == 3 ? "" : std::to_string(i * 37 % 11)) << ',' << i % 9 << ',' << i % 5 << '\n';
  return {{"use", "csv"},
          {"path", (folder / "gaps.csv").string()},
          {"target", "price"},
          {"missing", "nan"}};
}

json categories_in(const fs::path& folder) {
  std::ofstream file(folder / "categories.csv");
  file << "size,color,price\n";
  const char* const colors[] = {"red", "green", "blue"};
  for (int i = 0; i < 40; ++i)
    file << i * 37 % 11 << ',' << colors[i % 3] << ',' << i % 5 << '\n';
  return {{"use", "csv"},
          {"path", (folder / "categories.csv").string()},
          {"target", "price"},
          {"categorical", {"color"}}};
}

json labels_in(const fs::path& folder) {
  const TaskRandom random(3);
  std::ofstream file(folder / "labels.csv");
  file << "x,y,right,above\n";
  for (int i = 0; i < 40; ++i) {
    const int x = i * 37 % 11 - 5;
    const int y = i * 23 % 13 - 6;
    file << x << ',' << y << ',' << (x > 0) << ',' << (y > 0) << '\n';
  }
  return {{"use", "csv"},
          {"path", (folder / "labels.csv").string()},
          {"target", {{{"name", "where"}, {"columns", {"right", "above"}}, {"kind", "labels"}}}}};
}

const std::vector<FarData>& all_data() {
  static const Workspace* const kFiles = new Workspace;  // as long as the process
  static const std::vector<FarData> all = [] {
    const fs::path& folder = kFiles->folder();
    const json flat = {{"use", "flow"}, {"flow", {"flatten", "head"}}};
    const json linear = "linear";
    std::vector<FarData> data{
        {"Numbers", {{"data", {{"use", "friedman1"}, {"rows", 40}}}, {"model", linear}}},
        {"Quantiles",
         {{"data", {{"use", "friedman1"}, {"rows", 40}}},
          {"model", linear},
          {"loss", {{"use", "quantile"}, {"quantiles", {0.1, 0.5, 0.9}}}}}},
        {"Classes", {{"data", {{"use", "spirals"}, {"rows", 42}}}, {"model", linear}}},
        {"TwoClasses", {{"data", {{"use", "moons"}, {"rows", 40}}}, {"model", linear}}},
        {"Images", {{"data", images_in(folder, at::kFloat)}, {"model", flat}}},
        {"Bytes", {{"data", images_in(folder, at::kByte)}, {"model", flat}}},
        {"Distributions", {{"data", distributions_in(folder)}, {"model", linear}}},
        {"Labels", {{"data", labels_in(folder)}, {"model", linear}}},
        {"Gaps", {{"data", gaps_in(folder)}, {"model", linear}}},
        {"Categories", {{"data", categories_in(folder)}, {"model", linear}}}};
    for (FarData& one : data)
      one.document["training"] = {{"epochs", 2}, {"batch_size", 8}};
    return data;
  }();
  return all;
}

/// Whether a document is one that can be trained.
bool is_taken(const json& document) {
  try {
    dry_run(far_runtime(), far_runtime().resolve(on("near", document)));
    return true;
  } catch (const DocumentError&) {
    return false;
  } catch (const DataError&) {
    return false;
  }
}

void expect_the_same_on_far(const json& document) {
  const Workspace here;
  const Workspace there;
  const RunOutcome near = run(on("near", document), here);
  const RunOutcome far = run(on("far", document), there);

  EXPECT_EQ(all_bits(far), all_bits(near));
}

/// Adds each component of an interface, in the list that `key` names, to the first of the documents
/// that takes it; each document is then run on both devices.
void expect_all_the_same_on_far(const std::string& key, const std::vector<std::string>& names) {
  std::set<std::string> left(names.begin(), names.end());
  left.erase("faulty_transform");  // of the plugin in which tests make something go wrong
  for (const FarData& data : all_data()) {
    SCOPED_TRACE(data.name);
    json document = data.document;
    if (!document.contains(key))
      document[key] = json::array();
    const std::size_t before = document[key].size();
    const auto add_those_taken = [&] {
      return std::erase_if(left, [&](const std::string& name) {
        json longer = document;
        longer[key].push_back(name);
        const bool taken = is_taken(longer);
        if (taken)
          document = std::move(longer);
        return taken;
      });
    };
    while (add_those_taken() > 0)  // one may be taken only behind another
      continue;
    if (document[key].size() > before)
      expect_the_same_on_far(document);
  }
  // A new component may need data of a kind that is not here.
  EXPECT_LE(left.size(), 1U) << "not tried: " << ::testing::PrintToString(left);
}

TEST(FarComponents, MetricsAreThoseOfACpu) {
  expect_all_the_same_on_far("metrics", far_runtime().registry().names<MetricComputer>());
}

TEST(FarComponents, TransformsAreThoseOfACpu) {
  expect_all_the_same_on_far("transforms", far_runtime().registry().names<Transform>());
}

// All of them work on the device; the last two get numbers.
json image_document(const char* data) {
  const auto found = std::find_if(all_data().begin(), all_data().end(),
                                  [&](const FarData& one) { return one.name == data; });
  json document = found->document;
  document["transforms"] = json::parse(
      R"([{"use": "random_crop", "padding": 2}, {"use": "random_flip", "vertical": 0.5},
          {"use": "random_crop", "size": [5, 4], "fill": 7}, "standardize", "noise"])");
  document["validation"] = {{"use", "hold_out"}, {"fraction", 0.25}};
  return document;
}

TEST(FarComponents, ImagesArePreparedOnTheDevice) {
  expect_the_same_on_far(image_document("Images"));
  expect_the_same_on_far(image_document("Bytes"));
}

TEST(FarComponents, ImagesAreAugmentedAndMixedOnTheDevice) {
  json document = image_document("Bytes");
  document["transforms"] = json::parse(
      R"([{"use": "random_affine", "interpolation": "bilinear"}, "rand_augment", "color_jitter",
          "random_erasing", {"use": "mixup", "probability": 0.5, "per_row": true}, "cutmix"])");
  expect_the_same_on_far(document);
}

TEST(FarComponents, ImagesOfBytesCrossAsBytesAndTrainAsNumbers) {
  const Workspace workspace;
  const Workspace other;
  const RunOutcome numbers = run(on("far", image_document("Images")), workspace);
  const RunOutcome bytes = run(on("far", image_document("Bytes")), other);

  EXPECT_EQ(all_bits(bytes), all_bits(numbers));
  const json sent = to_json(bytes.result).at("device");
  const json as_numbers = to_json(numbers.result).at("device");
  EXPECT_EQ(sent.at("copies_to_device"), as_numbers.at("copies_to_device"));
  const std::int64_t saved = as_numbers.at("bytes_to_device").get<std::int64_t>() -
                             sent.at("bytes_to_device").get<std::int64_t>();
  constexpr std::int64_t kPixels = 2 * 6 * 5;
  EXPECT_EQ(saved % (3 * kPixels), 0) << "a byte instead of four for each pixel";
  EXPECT_GE(saved / (3 * kPixels), 2 * (30 + 10)) << "two epochs of training and of validation";
}

}  // namespace
}  // namespace treadle::testing
