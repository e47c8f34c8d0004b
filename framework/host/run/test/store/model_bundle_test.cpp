#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <ATen/ops/arange.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>
#include <treadle/tensor/safetensors.h>

#include "store/model_bundle.h"

namespace treadle::internal {
namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::StartsWith;

constexpr const char* kRemedy = "; export the run again: workflow-runner runs export RUN -o FILE";

/// A transform's statistics two parts deep, and weights whose names have dots in them.
ModelBundle small_bundle() {
  StateDict scale;
  scale.put("mean", at::arange(3, at::kDouble));
  scale.put("columns", nlohmann::json({"a", "b/c"}));
  StateDict transforms;
  transforms.put("0", std::move(scale));
  ModelBundle bundle;
  bundle.document = "{\"treadle\": 1}\n";
  bundle.plugins = "{\"plugins\": []}\n";
  bundle.preprocessing.put("transforms", std::move(transforms));
  bundle.preprocessing.put("data", StateDict(3));
  bundle.weights = {{"0.weight", at::arange(6, at::kFloat).view({2, 3})}};
  return bundle;
}

/// Of whoever writes a file by hand: the length of each text and the text, in the order of names.
std::string checksum_by_hand(const TensorFile& content) {
  ContentHash hash;
  const auto add = [&](std::string_view text) {
    hash.update(std::to_string(text.size()) + ":");
    hash.update(text);
  };
  for (const auto& [name, text] : content.metadata) {
    if (name == "checksum")
      continue;
    add(name);
    add(text);
  }
  for (const auto& [name, tensor] : content.tensors) {
    add(name);
    add(c10::toString(tensor.scalar_type()));
    for (const std::int64_t extent : tensor.sizes())
      add(std::to_string(extent));
    add({static_cast<const char*>(tensor.data_ptr()), tensor.nbytes()});
  }
  return hash.digest();
}

class ModelBundleTest : public ::testing::Test {
 protected:
  ModelBundleTest() {
    std::string pattern = (fs::temp_directory_path() / "treadle-bundle-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    file_ = folder_ / "model.bundle";
  }
  ~ModelBundleTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  std::string refusal() const {
    try {
      read_model_bundle(file_);
    } catch (const StorageError& error) {
      return error.what();
    }
    return "nothing was thrown";
  }
  /// The refusal of the bundle after `change`, as somebody would write it who knows the checksum.
  template <typename Change>
  std::string refusal_after(Change&& change) {
    ModelBundle bundle = small_bundle();
    change(bundle);
    write_model_bundle(file_, bundle);
    return refusal();
  }
  /// The refusal of a file whose texts and tensors are changed, its checksum left as it was.
  template <typename Change>
  std::string refusal_of_changed(Change&& change) {
    write_model_bundle(file_, small_bundle());
    TensorFile content = read_safetensors(file_);
    change(content);
    write_safetensors(file_, content);
    return refusal();
  }
  std::string bytes() const {
    std::ifstream file(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  std::string here(const std::string& what) const { return file_.string() + ": " + what; }

  fs::path folder_;
  fs::path file_;
};

TEST_F(ModelBundleTest, ComesBackWhole) {
  const ModelBundle bundle = small_bundle();
  write_model_bundle(file_, bundle);

  const ModelBundle read = read_model_bundle(file_);

  EXPECT_EQ(read.document, bundle.document);
  EXPECT_EQ(read.plugins, bundle.plugins);
  EXPECT_TRUE(read.weights.at("0.weight").equal(bundle.weights.at("0.weight")));
  const StateDict& scale = read.preprocessing.part("transforms").part("0");
  EXPECT_TRUE(scale.tensor("mean").equal(at::arange(3, at::kDouble)));
  EXPECT_EQ(scale.value("columns"), nlohmann::json({"a", "b/c"}));
  EXPECT_EQ(read.preprocessing.part("data").version(), 3);
}

TEST_F(ModelBundleTest, IsASafetensorsFileForOtherPrograms) {
  write_model_bundle(file_, small_bundle());

  const TensorFile content = read_safetensors(file_);

  EXPECT_EQ(content.tensors.count("model/0.weight"), 1U);
  EXPECT_EQ(content.tensors.count("preprocessing/transforms/0/mean"), 1U);
  EXPECT_EQ(content.metadata.at("workflow"), "{\"treadle\": 1}\n");
}

TEST_F(ModelBundleTest, ADamagedByteIsFound) {
  write_model_bundle(file_, small_bundle());
  const std::string whole = bytes();
  for (std::size_t at = 0; at < whole.size(); at += 5) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x11);
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << damaged;

    EXPECT_THAT(refusal(), StartsWith(file_.string() + ": ")) << "byte " << at;
  }
}

TEST_F(ModelBundleTest, ATornFileIsFound) {
  write_model_bundle(file_, small_bundle());
  const std::string whole = bytes();
  for (std::size_t size = 0; size < whole.size(); size += 31) {
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << whole.substr(0, size);

    EXPECT_THAT(refusal(),
                EndsWith("; expected the folder of a run, or a file that \"workflow-runner runs "
                         "export\" wrote"))
        << size << " bytes";
  }
}

TEST_F(ModelBundleTest, TellsOtherFilesApart) {
  write_safetensors(file_, {{{"0.weight", at::arange(3)}}, {}});
  EXPECT_EQ(refusal(), here("is no exported run, but some other safetensors file") + kRemedy);

  EXPECT_EQ(refusal_of_changed([](TensorFile& file) { file.metadata["treadle_bundle"] = "2"; }),
            here("has format 2; this version reads 1") + kRemedy);
}

TEST_F(ModelBundleTest, NoticesWhatIsMissingOrWasChanged) {
  EXPECT_EQ(refusal_of_changed([](TensorFile& file) { file.metadata.erase("checksum"); }),
            here("has no \"checksum\"") + kRemedy);
  const std::string damaged = here("is damaged: its checksum does not match") + kRemedy;
  EXPECT_EQ(refusal_of_changed([](TensorFile& file) { file.metadata["workflow"] += " "; }),
            damaged);
  EXPECT_EQ(refusal_of_changed([](TensorFile& file) { file.metadata.erase("plugins"); }), damaged);
  EXPECT_EQ(refusal_of_changed([](TensorFile& file) {
              file.tensors["model/0.weight"] = at::arange(6, at::kFloat).view({3, 2});
            }),
            damaged);
}

TEST_F(ModelBundleTest, NamesWhatIsWrongWithAPreprocessing) {
  const auto refusal_of = [&](const std::string& preprocessing) {
    write_model_bundle(file_, small_bundle());
    TensorFile content = read_safetensors(file_);
    content.metadata["preprocessing"] = preprocessing;
    content.metadata["checksum"] = checksum_by_hand(content);
    write_safetensors(file_, content);
    return refusal();
  };

  EXPECT_EQ(refusal_of(R"({"version": 1, "values": {"a/b": 1}, "parts": {}})"),
            here("has the name \"a/b\" in it, which no state has") + kRemedy);
  EXPECT_EQ(refusal_of(R"({"version": "one", "values": {}, "parts": {}})"),
            here("has a preprocessing that cannot be read: its version is not a number") + kRemedy);
  for (const char* const text :
       {"{", "[]", R"({"version": 1, "values": 3, "parts": {}})",
        R"({"version": 1, "values": {}, "parts": [1]})", R"({"version": 1, "values": {}})"}) {
    EXPECT_EQ(refusal_of(text), here("has a preprocessing that cannot be read") + kRemedy) << text;
  }
}

TEST_F(ModelBundleTest, NamesAndNestingAreBounded) {
  EXPECT_EQ(refusal_after([](ModelBundle& bundle) {
              bundle.weights.emplace("../../etc/passwd", at::arange(3));
            }),
            here("has the name \"../../etc/passwd\" in it, which no state has") + kRemedy);
  EXPECT_EQ(refusal_after([](ModelBundle& bundle) {
              for (int level = 0; level < 40; ++level) {
                StateDict outer;
                outer.put("in", std::exchange(bundle.preprocessing, StateDict()));
                bundle.preprocessing = std::move(outer);
              }
            }),
            here("has a preprocessing that is nested too deeply") + kRemedy);
  EXPECT_EQ(refusal_after([](ModelBundle& bundle) {
              nlohmann::json deep = 1;
              for (int level = 0; level < 200; ++level)
                deep = nlohmann::json::array({std::move(deep)});
              bundle.preprocessing.put("deep", std::move(deep));
            }),
            here("has a preprocessing that is nested too deeply") + kRemedy);
}

}  // namespace
}  // namespace treadle::internal
