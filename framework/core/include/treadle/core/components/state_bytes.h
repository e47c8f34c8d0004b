#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <treadle/core/components/state_dict.h>

namespace treadle {

/// A state as one block of bytes, for another process of the same program. Tensors are on the CPU
/// afterwards; all bits are kept.
std::vector<std::byte> bytes_of(const StateDict& state);

/// Throws StorageError for bytes that are not a state's.
StateDict state_of_bytes(std::span<const std::byte> bytes);

}  // namespace treadle
