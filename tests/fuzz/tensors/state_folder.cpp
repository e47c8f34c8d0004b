#include <treadle/host/run/state_folder.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>

#include "scratch.h"
#include "targets.h"

namespace treadle::fuzz {

bool same_state(const StateDict& a, const StateDict& b) {
  if (a.version() != b.version() || a.values() != b.values() ||
      a.tensors().size() != b.tensors().size() || a.parts().size() != b.parts().size())
    return false;
  for (const auto& [name, tensor] : a.tensors()) {
    if (!b.has_tensor(name) || !same_tensor(tensor, b.tensor(name)))
      return false;
  }
  for (const auto& [name, part] : a.parts()) {
    if (!b.has_part(name) || !same_state(part, b.part(name)))
      return false;
  }
  return true;
}

namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kTensorFiles[] = {"weights.safetensors", "state.safetensors"};

void write(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

/// Whoever writes a folder by hand writes its checksums, too. Text that is nested too deeply for
/// nlohmann's recursive dump() stays without: the reader refuses it before it looks at them.
std::string with_checksums(std::string_view text, const fs::path& folder) {
  constexpr int kMostLevels = 1000;
  bool is_too_deep = false;
  Json content = Json::parse(
      text,
      [&](int depth, Json::parse_event_t, const Json&) {
        is_too_deep = is_too_deep || depth > kMostLevels;
        return true;
      },
      /*allow_exceptions=*/false);
  if (is_too_deep || !content.is_object())
    return std::string(text);
  Json hashes = Json::object();
  for (const char* const name : kTensorFiles)
    hashes[name] = hash_file(folder / name);
  if (content.contains("state"))
    hashes["state"] = hash_text(content["state"].dump());
  content["hashes"] = std::move(hashes);
  return content.dump();
}

void read(const fs::path& folder, std::size_t size) {
  StateDict state;
  try {
    state = read_state_folder(folder);
  } catch (const StorageError& error) {
    return promise_readable(error.what(), 2000 + 6 * size);
  }
  fs::path copy = folder;
  copy += "-copy";
  write_state_folder(copy, state);
  promise(same_state(read_state_folder(copy), state), "a state written again is the same");
}

}  // namespace

void state_folder(std::string_view bytes) {
  static const Scratch scratch;
  const fs::path folder = scratch.folder() / "state";
  fs::create_directory(folder);
  std::string_view rest = bytes;
  const std::string_view text = take_part(rest);
  for (const char* const name : kTensorFiles)
    write(folder / name, rest);
  write(folder / "state.json", text);
  read(folder, bytes.size());
  std::string sealed;
  try {
    sealed = with_checksums(text, folder);
  } catch (const Json::exception&) {
    return;  // text that is not UTF-8, which cannot be written
  }
  write(folder / "state.json", sealed);
  read(folder, bytes.size());
}

}  // namespace treadle::fuzz
