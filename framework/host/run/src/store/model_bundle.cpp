#include "store/model_bundle.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <c10/core/ScalarType.h>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>
#include <treadle/base/json_words.h>
#include <treadle/base/version.h>
#include <treadle/tensor/safetensors.h>

// Exported models, which people download and pass on: everything read here is a stranger's.
//
// The order of checks matters. read_safetensors() compares every length and offset with the file.
// The format comes before the checksum, whose definition belongs to the format. Only then is the
// content interpreted. The checksum finds damage, not forgery: anybody can compute it for a forged
// file. So names and nesting are checked as well. Names become keys of states, never paths of
// files. Bounds on nesting protect the stack: code that walks a JSON value or a state recurses once
// per level.

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
  // Each text comes with its length, or ("ab", "c") and ("a", "bc") would have one hash. Names are
  // hashed in the order of the maps, not of the file, which orders tensors by element size.
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

TensorFile content_of(const std::filesystem::path& file) {
  try {
    return read_safetensors(file);
  } catch (const StorageError& error) {
    throw StorageError(std::string(error.what()) +
                       "; expected the folder of a run, or a file that \"workflow-runner runs "
                       "export\" wrote");
  }
}

/// Reads the content of `file`, the texts of whose metadata the bundle asks for by name.
class BundleReader {
 public:
  BundleReader(const std::filesystem::path& file, TensorFile content)
      : file_(file), content_(std::move(content)) {
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

  // The parts of the file by the prefix of their names. A tensor of neither part is an error: a
  // file with more in it than this version reads was not written by it.
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
    // A callback of the parser: a deep text is refused before there is a value of that depth.
    const auto is_shallow = [this](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
      if (depth > kMostJsonLevels)
        refuse_nesting();
      return true;
    };
    try {
      // Values and structure first; read() then puts the tensors into the parts that exist, or
      // makes them.
      const nlohmann::json structure = nlohmann::json::parse(text(kPreprocessing), is_shallow);
      expect_parts(structure, 0);
      return assemble(structure);
    } catch (const nlohmann::json::exception&) {
      refuse(file_, "has a preprocessing that cannot be read");
    }
  }

  StateDict assemble(const nlohmann::json& structure) const {
    try {
      return put_together(structure);
    } catch (const StorageError& error) {
      refuse(file_, std::string("has a preprocessing that cannot be read: ") + error.what());
    }
  }

  void expect_parts(const nlohmann::json& structure, int level) const {
    using Object = nlohmann::json::object_t;
    if (level > kMostLevels)
      refuse_nesting();
    for (const char* kind : {"values", "parts"}) {
      for (const auto& [name, unused] : structure.at(kind).get_ref<const Object&>())
        expect_name(name);
    }
    for (const auto& [unused, part] : structure.at("parts").get_ref<const Object&>())
      expect_parts(part, level + 1);
  }

  void expect_path(std::string_view path) const {
    if (std::count(path.begin(), path.end(), '/') > kMostLevels)
      refuse_nesting();
    for (std::size_t begin = 0; begin <= path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      expect_name(path.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  [[noreturn]] void refuse_nesting() const {
    refuse(file_, "has a preprocessing that is nested too deeply");
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
  // JSON for values and structure, tensors under their paths: the same form as in state folders.
  const nlohmann::json structure =
      take_apart(bundle.preprocessing, std::string(kPreprocessingPrefix), content.tensors);
  content.metadata = {{kFormat, kFormatVersion},
                      {"treadle", std::string(version())},
                      {kDocument, bundle.document},
                      {kPlugins, bundle.plugins},
                      {kPreprocessing, structure.dump()}};
  // Last: it covers all other metadata.
  content.metadata[kChecksum] = checksum_of(content);
  write_safetensors(file, content);
}

bool is_model_bundle(const TensorFile& content) {
  return content.metadata.count(kFormat) > 0;
}

ModelBundle read_model_bundle(const std::filesystem::path& file) {
  return read_model_bundle(file, content_of(file));
}

ModelBundle read_model_bundle(const std::filesystem::path& file, TensorFile content) {
  return BundleReader(file, std::move(content)).read();
}

}  // namespace treadle::internal
