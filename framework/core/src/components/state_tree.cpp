#include <treadle/core/components/state_tree.h>

#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle {
namespace {

/// Deeper than any state; each level is a call of these functions.
constexpr int kMostPartsWithin = 128;

void expect_level(int level) {
  if (level > kMostPartsWithin)
    throw StorageError("its parts are nested too deeply");
}

/// StateDict expects such names.
const std::string& expect_word(const std::string& name) {
  if (name.empty() || name.find('/') != std::string::npos)
    throw StorageError(quote_text(name) + " cannot be a name in it");
  return name;
}

StateDict put_together(const nlohmann::json& structure, int level) {
  expect_level(level);
  const nlohmann::json& version = structure.at("version");
  if (!version.is_number_integer())
    throw StorageError("its version is not a number");
  StateDict state(version.get<int>());
  for (const auto& [name, value] :
       structure.at("values").get_ref<const nlohmann::json::object_t&>())
    state.put(expect_word(name), value);
  for (const auto& [name, part] : structure.at("parts").get_ref<const nlohmann::json::object_t&>())
    state.put(expect_word(name), put_together(part, level + 1));
  return state;
}

void put_at(StateDict& state, std::string_view path, const at::Tensor& tensor, int level) {
  expect_level(level);
  const std::size_t slash = path.find('/');
  const std::string name = expect_word(std::string(path.substr(0, slash)));
  if (slash == std::string_view::npos) {
    state.put(name, tensor);
    return;
  }
  StateDict part = state.has_part(name) ? state.part(name) : StateDict();
  put_at(part, path.substr(slash + 1), tensor, level + 1);
  state.put(name, std::move(part));
}

}  // namespace

nlohmann::json take_apart(const StateDict& state, const std::string& prefix,
                          NamedTensors& tensors) {
  nlohmann::json parts = nlohmann::json::object();
  for (const auto& [name, tensor] : state.tensors())
    tensors.emplace(prefix + name, tensor);
  for (const auto& [name, part] : state.parts()) {
    parts[name] = take_apart(part, prefix + name + "/", tensors);
  }
  return {{"version", state.version()}, {"values", state.values()}, {"parts", std::move(parts)}};
}

StateDict put_together(const nlohmann::json& structure) {
  return put_together(structure, 0);
}

void put_at(StateDict& state, std::string_view path, const at::Tensor& tensor) {
  put_at(state, path, tensor, 0);
}

}  // namespace treadle
