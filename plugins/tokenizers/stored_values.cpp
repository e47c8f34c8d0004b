#include "stored_values.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

namespace treadle::tokenizers {

void refuse_state(const std::string& why) {
  throw StorageError("the stored vocabulary of the tokenizer is damaged: " + why);
}

void put_numbers(StateDict& state, const std::string& name, std::span<const std::int64_t> numbers) {
  const at::Tensor tensor = at::empty({static_cast<std::int64_t>(numbers.size())}, at::kLong);
  std::copy(numbers.begin(), numbers.end(), tensor.data_ptr<std::int64_t>());
  state.put(name, tensor);
}

std::vector<std::int64_t> stored_numbers(const StateDict& state, const std::string& name) {
  const at::Tensor& stored = state.tensor(name);
  if (!stored.defined() || stored.scalar_type() != at::kLong || stored.dim() != 1)
    refuse_state("\"" + name + "\" is not a list of int64 numbers");
  const at::Tensor tensor = stored.cpu().contiguous();
  const std::int64_t* const begin = tensor.data_ptr<std::int64_t>();
  return {begin, begin + tensor.numel()};
}

void put_texts(StateDict& state, const std::string& name, std::span<const std::string> texts) {
  std::vector<std::int64_t> lengths;
  std::string all;
  for (const std::string& text : texts) {
    lengths.push_back(static_cast<std::int64_t>(text.size()));
    all += text;
  }
  const at::Tensor bytes = at::empty({static_cast<std::int64_t>(all.size())}, at::kByte);
  if (!all.empty())
    std::memcpy(bytes.data_ptr<std::uint8_t>(), all.data(), all.size());
  state.put(name, bytes);
  put_numbers(state, name + "_lengths", lengths);
}

std::vector<std::string> stored_texts(const StateDict& state, const std::string& name) {
  const at::Tensor& stored = state.tensor(name);
  if (!stored.defined() || stored.scalar_type() != at::kByte || stored.dim() != 1)
    refuse_state("\"" + name + "\" is not a list of bytes");
  const at::Tensor tensor = stored.cpu().contiguous();
  const auto* const begin = reinterpret_cast<const char*>(tensor.data_ptr<std::uint8_t>());
  const std::int64_t size = tensor.numel();
  std::vector<std::string> texts;
  std::int64_t at = 0;
  for (const std::int64_t length : stored_numbers(state, name + "_lengths")) {
    if (length < 0 || length > size - at)
      refuse_state("the lengths of \"" + name + "\" do not fit its " + std::to_string(size) +
                   " bytes");
    texts.emplace_back(begin + at, static_cast<std::size_t>(length));
    at += length;
  }
  if (at != size)
    refuse_state("the lengths of \"" + name + "\" add up to " + std::to_string(at) + ", not to " +
                 std::to_string(size) + " bytes");
  return texts;
}

bool stored_bool(const StateDict& state, const std::string& name) {
  const nlohmann::json& value = state.value(name);
  if (!value.is_boolean())
    refuse_state("\"" + name + "\" is not true or false");
  return value.get<bool>();
}

std::int64_t stored_integer(const StateDict& state, const std::string& name) {
  const nlohmann::json& value = state.value(name);
  if (!value.is_number_integer())
    refuse_state("\"" + name + "\" is not an integer");
  return value.get<std::int64_t>();
}

}  // namespace treadle::tokenizers
