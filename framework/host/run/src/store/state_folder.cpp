#include <treadle/host/run/state_folder.h>

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>
#include <treadle/base/hash.h>
#include <treadle/base/json_words.h>
#include <treadle/tensor/safetensors.h>

#include <treadle/core/components/state_tree.h>

// A state as a folder that is complete or not there.
//
// Order of writes: tensors, then state.json with the hashes of the tensor files, all in
// "<name>.<process>.tmp", each synced by write_file_atomically(); then the folder is renamed, and
// its parent synced. A kill before the rename leaves a ".tmp", which nothing reads and
// RunFolder::open() removes. Processes that search together may write the same folder at the same
// time: either's counts.
//
// state.json is written last, with hashes of the tensor files and of the state in it, so a folder
// whose files belong to two states is found. Reading verifies the hashes before it interprets
// anything; a state may come from a stranger, so nesting and names are checked as well.

namespace treadle {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWeights = "weights.safetensors";
constexpr const char* kTensors = "state.safetensors";
constexpr const char* kValues = "state.json";
constexpr const char* kModelPart = "model";
constexpr int kFormat = 1;

void sync_folder(const fs::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return;
  fsync(descriptor);
  close(descriptor);
}

/// Renames, also over a folder that is there already: the two change places in one instant, so that
/// at no time there is none.
void put_in_place(const fs::path& making, const fs::path& folder, std::error_code& error) {
  // Only over an empty folder, and there is none.
  if (::rename(making.c_str(), folder.c_str()) == 0) {
    error.clear();
    return;
  }
  if (errno != ENOTEMPTY && errno != EEXIST) {
    error.assign(errno, std::generic_category());
    return;
  }
  if (renameat2(AT_FDCWD, making.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) != 0) {
    // A file system that cannot exchange: the old one has to go first.
    fs::remove_all(folder, error);
    fs::rename(making, folder, error);
    return;
  }
  // The new one is in place, whether the old one can be deleted or not. RunFolder::open() tries
  // again.
  std::error_code ignored;
  fs::remove_all(making, ignored);
}

[[noreturn]] void damaged(const fs::path& path, const std::string& what) {
  throw StorageError(path.string() + ": is damaged: " + what);
}

/// A state from a stranger: a hundred thousand brackets must not use up the stack.
nlohmann::json parse_values(const fs::path& path, const std::string& text) {
  constexpr int kMostLevels = 512;  // two for each part within a part, and those of values
  return nlohmann::json::parse(
      text, [&](int depth, nlohmann::json::parse_event_t, const nlohmann::json&) {
        if (depth > kMostLevels)
          damaged(path, "it is nested too deeply");
        return true;
      });
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw StorageError(path.string() + ": is missing or cannot be read");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void expect_hash(const fs::path& path, const nlohmann::json& hashes) {
  const std::string name = path.filename().string();
  if (hash_file(path) != hashes.at(name).get<std::string>()) {
    damaged(path, "its checksum does not match");
  }
}

StateDict assemble(const fs::path& path, const nlohmann::json& structure,
                   const TensorFile& tensors) {
  try {
    StateDict state = put_together(structure);
    for (const auto& [name, tensor] : tensors.tensors)
      put_at(state, name, tensor);
    return state;
  } catch (const StorageError& error) {
    damaged(path, error.what());
  }
}

void write_files(const fs::path& making, const StateDict& state) {
  TensorFile weights;
  TensorFile tensors;
  // Weights get a file of their own under their plain names: other programs can read it.
  StateDict rest(state.version());
  for (const auto& [name, value] : state.values().items())
    rest.put(name, value);
  for (const auto& [name, tensor] : state.tensors())
    rest.put(name, tensor);
  for (const auto& [name, part] : state.parts()) {
    if (name != kModelPart)
      rest.put(name, part);
  }
  if (state.has_part(kModelPart))
    weights.tensors = state.part(kModelPart).tensors();
  const nlohmann::json structure = take_apart(rest, "", tensors.tensors);
  write_safetensors(making / kWeights, weights);
  write_safetensors(making / kTensors, tensors);
  const std::string body = structure.dump();
  const nlohmann::json content = {{"format", kFormat},
                                  {"hashes",
                                   {{kWeights, hash_file(making / kWeights)},
                                    {kTensors, hash_file(making / kTensors)},
                                    {"state", hash_text(body)}}},
                                  {"has_model", state.has_part(kModelPart)},
                                  {"state", structure}};
  write_file_atomically(making / kValues, content.dump());
}

}  // namespace

void write_state_folder(const fs::path& folder, const StateDict& state) {
  fs::path making = folder;
  making += "." + std::to_string(getpid()) + ".tmp";
  std::error_code error;
  const auto write = [&] {
    fs::remove_all(making, error);
    // Twice: see below.
    if (!fs::create_directories(making, error) && error)
      fs::create_directories(making, error);
    if (error)
      throw StorageError(making.string() + ": cannot be made: " + error.message());
    try {
      write_files(making, state);
    } catch (...) {
      if (!fs::exists(making, error))
        return false;
      fs::remove_all(making, error);
      throw;
    }
    put_in_place(making, folder, error);
    std::error_code ignored;
    if (error && fs::exists(making, ignored))
      throw StorageError(folder.string() + ": cannot be put in place: " + error.message());
    return !error;
  };
  // Another process may take the folder above away meanwhile: that of a trial which this process
  // lost while it was frozen.
  if (!write() && !write())
    throw StorageError(making.string() + ": is removed by another process while it is written");
  sync_folder(folder.parent_path());
}

StateDict read_state_folder(const fs::path& folder) {
  const fs::path values_path = folder / kValues;
  try {
    const nlohmann::json content = parse_values(values_path, read_text(values_path));
    if (content.at("format") != kFormat) {
      throw StorageError(values_path.string() + ": has format " +
                         quote_value(content.at("format")) + "; this version reads " +
                         std::to_string(kFormat));
    }
    const nlohmann::json& structure = content.at("state");
    const nlohmann::json& hashes = content.at("hashes");
    if (hash_text(structure.dump()) != hashes.at("state").get<std::string>()) {
      damaged(values_path, "its checksum does not match");
    }
    expect_hash(folder / kWeights, hashes);
    expect_hash(folder / kTensors, hashes);
    const TensorFile tensors = read_safetensors(folder / kTensors);
    StateDict state = assemble(values_path, structure, tensors);
    if (content.at("has_model").get<bool>()) {
      StateDict model;
      for (const auto& [name, tensor] : read_safetensors(folder / kWeights).tensors) {
        if (name.empty() || name.find('/') != std::string::npos)
          damaged(folder / kWeights, "a tensor cannot be called " + quote_text(name));
        model.put(name, tensor);
      }
      state.put(kModelPart, std::move(model));
    }
    return state;
  } catch (const nlohmann::json::exception&) {
    // The library's words are about characters and types; nobody mends a state by hand.
    damaged(values_path, "it is not what was written there");
  }
}

}  // namespace treadle
