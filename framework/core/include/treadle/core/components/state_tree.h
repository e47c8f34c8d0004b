#pragma once

#include <map>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

#include <treadle/core/components/state_dict.h>

/// A StateDict taken apart, as files have it: values and structure as JSON, tensors by their paths
/// "part/part/name".
namespace treadle {

using NamedTensors = std::map<std::string, at::Tensor, std::less<>>;

/// {"version", "values", "parts"}; the tensors are added to `tensors`, with `prefix` in front of
/// their paths.
nlohmann::json take_apart(const StateDict& state, const std::string& prefix, NamedTensors& tensors);

/// The state without its tensors. Throws nlohmann::json::exception or StorageError, whose text goes
/// behind a file's name, for what take_apart() does not return.
StateDict put_together(const nlohmann::json& structure);

/// Puts a tensor under its path, without the prefix. Throws StorageError like put_together().
void put_at(StateDict& state, std::string_view path, const at::Tensor& tensor);

}  // namespace treadle
