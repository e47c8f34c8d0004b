#pragma once

#include <filesystem>

#include "bpe_vocabulary.h"

namespace treadle::tokenizers {

/// Reads GPT-2's vocab.json and merges.txt. Throws a DataError that names the key or the line.
BpeVocabulary read_bpe_files(const std::filesystem::path& vocabulary,
                             const std::filesystem::path& merges);

}  // namespace treadle::tokenizers
