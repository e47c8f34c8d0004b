#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "bpe_vocabulary.h"
#include "text_table.h"

namespace treadle::tokenizers {

/// Learns merges from words and how often each occurs (R. Sennrich, B. Haddow, A. Birch, "Neural
/// Machine Translation of Rare Words with Subword Units", ACL 2016): tokens 0 to 255 are the bytes;
/// the pair of neighbours that occurs most often becomes a token, until there are `size` tokens or
/// no pair occurs twice. Of pairs that occur equally often that with the smaller first token, then
/// the smaller second one, in the order of bytes. Two pairs may make one token.
BpeVocabulary train_bpe(const ByText<std::int64_t>& words, std::int64_t size);

}  // namespace treadle::tokenizers
