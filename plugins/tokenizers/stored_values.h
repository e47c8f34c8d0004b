#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/core/components/state_dict.h>

/// Vocabularies in a state. Tensors rather than JSON: tokens need not be UTF-8.
namespace treadle::tokenizers {

void put_texts(StateDict& state, const std::string& name, std::span<const std::string> texts);
/// Throws a StorageError where lengths and bytes do not fit.
std::vector<std::string> stored_texts(const StateDict& state, const std::string& name);

void put_numbers(StateDict& state, const std::string& name, std::span<const std::int64_t> numbers);
/// Throws a StorageError for a tensor of another kind.
std::vector<std::int64_t> stored_numbers(const StateDict& state, const std::string& name);

/// A boolean or number. Throws a StorageError for a value of another kind.
bool stored_bool(const StateDict& state, const std::string& name);
std::int64_t stored_integer(const StateDict& state, const std::string& name);

/// Throws a StorageError: the vocabulary of a state is damaged, because of `why`.
[[noreturn]] void refuse_state(const std::string& why);

}  // namespace treadle::tokenizers
