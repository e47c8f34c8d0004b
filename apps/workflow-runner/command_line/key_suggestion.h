#pragma once

#include <span>
#include <string>
#include <string_view>

namespace treadle::cli {

/// For `--epochs 5`, which is no option: `; did you mean "--set training.epochs=5"?`, where a
/// document among the words has such a key. Empty otherwise.
std::string key_suggestion(std::string_view option, std::span<const std::string> words);

}  // namespace treadle::cli
