#include "store/model_bundle.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <c10/core/ScalarType.h>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>
#include <treadle/base/json_words.h>
#include <treadle/base/version.h>
#include <treadle/core/safetensors.h>

namespace treadle::internal {
namespace {

constexpr const char* kFormat = "treadle_bundle";
constexpr const char* kFormatVersion = "1";
constexpr const char* kDocument = "workflow";
constexpr const char* kPlugins = "plugins";
constexpr const char* kPreprocessing = "preprocessing";
constexpr const char* kChecksum = "checksum";
constexpr std::string_view kWeightsPrefix = "model/";
constexpr std::string_view kPreprocessingPrefix = "preprocessing/";

constexpr int kMostLevels = 32;       // of parts in parts; four are in use
constexpr int kMostJsonLevels = 128;  // of those, and of what their values hold

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& what) {
  throw StorageError(file.string() + ": " + what +
                     "; export the run again: workflow-runner runs export RUN -o FILE");
}

/// Of everything but itself, in an order that does not depend on the file.
std::string checksum_of(const TensorFile& content) {
  ContentHash hash;
  const auto add = [&](std::string_view text) {
    hash.update(std::to_string(text.size()) + ":");
    hash.update(text);
  };
  for (const auto& [name, text] : content.metadata) {
    if (name == kChecksum)
      continue;
    add(name);
    add(text);
  }
  for (const auto& [name, tensor] : content.tensors) {
    const at::Tensor plain = tensor.detach().to(at::kCPU).contiguous();
    add(name);
    add(c10::toString(plain.scalar_type()));
    for (const std::int64_t extent : plain.sizes())
      add(std::to_string(extent));
    add({static_cast<const char*>(plain.data_ptr()), plain.nbytes()});
  }
  return hash.digest();
}

/// Reads `file`, the texts of whose metadata the bundle asks for by name.
class BundleReader {
 public:
  explicit BundleReader(const std::filesystem::path& file) : file_(file) {
    try {
      content_ = read_safetensors(file);
    } catch (const StorageError& error) {
      throw StorageError(std::string(error.what()) +
                         "; expected the folder of a run, or a file that \"workflow-runner runs "
                         "export\" wrote");
    }
    const auto format = content_.metadata.find(kFormat);
    if (format == content_.metadata.end())
      refuse(file_, "is no exported run, but some other safetensors file");
    if (format->second != kFormatVersion) {
      refuse(file_,
             "has format " + plain_text(format->second) + "; this version reads " + kFormatVersion);
    }
    if (text(kChecksum) != checksum_of(content_))
      refuse(file_, "is damaged: its checksum does not match");
  }

  ModelBundle read() const {
    ModelBundle bundle{text(kDocument), text(kPlugins), preprocessing(), {}};
    for (const auto& [name, tensor] : content_.tensors) {
      const std::string_view whole = name;
      if (whole.starts_with(kWeightsPrefix)) {
        expect_name(whole.substr(kWeightsPrefix.size()));
        bundle.weights.emplace(whole.substr(kWeightsPrefix.size()), tensor);
      } else if (whole.starts_with(kPreprocessingPrefix)) {
        const std::string_view path = whole.substr(kPreprocessingPrefix.size());
        expect_path(path);
        put_at(bundle.preprocessing, path, tensor);
      } else {
        refuse(file_, "has a tensor " + quote_text(name) + " that is of neither part");
      }
    }
    return bundle;
  }

 private:
  const std::string& text(const std::string& name) const {
    const auto found = content_.metadata.find(name);
    if (found == content_.metadata.end())
      refuse(file_, "has no " + quote_text(name));
    return found->second;
  }

  StateDict preprocessing() const {
    const auto is_shallow = [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
      if (depth > kMostJsonLevels)
        throw StorageError("nested too deeply");
      return true;
    };
    try {
      const nlohmann::json structure = nlohmann::json::parse(text(kPreprocessing), is_shallow);
      expect_parts(structure, 0);
      return put_together(structure);
    } catch (const nlohmann::json::exception&) {
      refuse(file_, "has a preprocessing that cannot be read");
    } catch (const StorageError&) {
      refuse(file_, "has a preprocessing that is nested too deeply");
    }
  }

  void expect_parts(const nlohmann::json& structure, int level) const {
    if (level > kMostLevels)
      throw StorageError("nested too deeply");
    for (const char* kind : {"values", "parts"}) {
      for (const auto& [name, unused] : structure.at(kind).items())
        expect_name(name);
    }
    for (const auto& [unused, part] : structure.at("parts").items())
      expect_parts(part, level + 1);
  }

  void expect_path(std::string_view path) const {
    if (std::count(path.begin(), path.end(), '/') > kMostLevels)
      refuse(file_, "has a preprocessing that is nested too deeply");
    for (std::size_t begin = 0; begin <= path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      expect_name(path.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  void expect_name(std::string_view name) const {
    if (name.empty() || name.find('/') != std::string_view::npos)
      refuse(file_, "has the name " + quote_text(name) + " in it, which no state has");
  }

  const std::filesystem::path& file_;
  TensorFile content_;
};

}  // namespace

void write_model_bundle(const std::filesystem::path& file, const ModelBundle& bundle) {
  TensorFile content;
  for (const auto& [name, tensor] : bundle.weights)
    content.tensors.emplace(std::string(kWeightsPrefix) + name, tensor);
  const nlohmann::json structure =
      take_apart(bundle.preprocessing, std::string(kPreprocessingPrefix), content.tensors);
  content.metadata = {{kFormat, kFormatVersion},
                      {"treadle", std::string(version())},
                      {kDocument, bundle.document},
                      {kPlugins, bundle.plugins},
                      {kPreprocessing, structure.dump()}};
  content.metadata[kChecksum] = checksum_of(content);
  write_safetensors(file, content);
}

ModelBundle read_model_bundle(const std::filesystem::path& file) {
  return BundleReader(file).read();
}

}  // namespace treadle::internal
