#include <string>

#include <nlohmann/json.hpp>

#include <c10/core/ScalarType.h>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>
#include <treadle/tensor/safetensors.h>

#include "memory_file.h"
#include "model/prediction_pool.h"
#include "scratch.h"
#include "store/model_bundle.h"
#include "targets.h"

namespace treadle::fuzz {
namespace {

using internal::ModelBundle;

/// Whoever writes a file by hand writes its checksum, too: the length of each text and the text.
TensorFile with_checksum(TensorFile content) {
  ContentHash hash;
  const auto add = [&](std::string_view text) {
    hash.update(std::to_string(text.size()) + ":");
    hash.update(text);
  };
  content.metadata.erase("checksum");
  for (const auto& [name, text] : content.metadata) {
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
  content.metadata["checksum"] = hash.digest();
  return content;
}

bool same_bundle(const ModelBundle& a, const ModelBundle& b) {
  if (a.document != b.document || a.plugins != b.plugins || a.weights.size() != b.weights.size())
    return false;
  for (const auto& [name, tensor] : a.weights) {
    const auto other = b.weights.find(name);
    if (other == b.weights.end() || !same_tensor(other->second, tensor))
      return false;
  }
  return same_state(a.preprocessing, b.preprocessing);
}

/// The weights of an ensemble's members are in a record of its own.
void read_ensemble(const StateDict& preprocessing) {
  if (!preprocessing.has_part("ensemble") || !preprocessing.part("ensemble").has_value("record"))
    return;
  try {
    const EnsembleResult ensemble =
        ensemble_result_from(preprocessing.part("ensemble").value("record"), "model");
    const internal::PredictionPool pool = internal::read_pool(ensemble);
    promise(pool.weights.dim() == 2 &&
                pool.weights.size(0) == static_cast<std::int64_t>(ensemble.members.size()),
            "each member of an ensemble has weights");
  } catch (const StorageError& error) {
    promise_readable(error.what(), 1000);
  }
}

void read_bundle(const std::filesystem::path& file, const std::filesystem::path& copy,
                 std::size_t size) {
  ModelBundle bundle;
  try {
    bundle = internal::read_model_bundle(file);
  } catch (const StorageError& error) {
    return promise_readable(error.what(), 2000 + 6 * size);
  }
  read_ensemble(bundle.preprocessing);
  internal::write_model_bundle(copy, bundle);
  promise(same_bundle(internal::read_model_bundle(copy), bundle),
          "a model exported again is the same");
}

}  // namespace

void exported_model(std::string_view bytes) {
  static const Scratch scratch;
  const std::filesystem::path copy = scratch.folder() / "copy.safetensors";
  const MemoryFile file(bytes);
  read_bundle(file.path(), copy, bytes.size());
  TensorFile content;
  try {
    content = read_safetensors(file.path());
  } catch (const StorageError&) {
    return;  // of the target `safetensors`
  }
  const std::filesystem::path sealed = scratch.folder() / "sealed.safetensors";
  write_safetensors(sealed, with_checksum(std::move(content)));
  read_bundle(sealed, copy, bytes.size());
}

}  // namespace treadle::fuzz
