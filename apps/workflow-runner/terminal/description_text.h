#pragma once

#include <string>
#include <vector>

#include <treadle/host/describe/data_description.h>

#include "terminal/terminal.h"

/// What `data describe` finds, as text for people.
namespace treadle::cli {

/// Tables of columns, the strongest relations, clusters, the split, and last what to check, in
/// lines no wider than the terminal. `document`: the name of the file, for the first line.
std::string description_text(const describe::DataDescription& description,
                             const std::string& document, const Terminal& terminal);

/// "warning: …" for each sentence.
std::string warnings_text(const std::vector<std::string>& sentences, const Terminal& terminal);

}  // namespace treadle::cli
