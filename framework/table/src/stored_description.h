#pragma once

#include <treadle/core/components/state_dict.h>

#include "table_layout.h"

namespace treadle::table {

/// The entries of a provider's state that hold a description: "layout", "spec", and "groups" of
/// a table that has some.
void store(const TableDescription& description, StateDict& state);
/// Throws StorageError where they contradict each other.
TableDescription stored_description(const StateDict& state);

}  // namespace treadle::table
