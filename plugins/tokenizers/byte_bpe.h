#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/data/tokenizer.h>

#include "bpe_vocabulary.h"
#include "pair_merger.h"
#include "pattern.h"

namespace treadle::tokenizers {

class WordCache;

/// `byte_bpe`: byte-level byte pair encoding as GPT-2 has it (A. Radford et al., "Language Models
/// are Unsupervised Multitask Learners", 2019). Text is split into words by GPT-2's pattern; bytes
/// of a word are merged, see PairMerger; nothing is merged across words.
class ByteBpe final : public Tokenizer {
 public:
  explicit ByteBpe(const Config& config);
  ~ByteBpe() override;

 private:
  void do_fit(std::span<const std::string_view> documents) override;
  std::int64_t do_vocabulary_size() const override;
  std::vector<std::int64_t> do_encode(std::string_view text) const override;
  std::string do_decode(std::span<const std::int64_t> tokens) const override;
  bool do_is_exact() const override { return true; }
  std::optional<std::int64_t> do_end_of_text() const override { return vocabulary_.end_of_text; }
  std::string do_token(std::int64_t index) const override;

  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  BpeVocabulary trained(std::span<const std::string_view> documents) const;
  void use(BpeVocabulary vocabulary);

  std::optional<std::string> vocabulary_file_;
  std::optional<std::string> merges_file_;
  std::int64_t size_ = 0;
  bool with_end_ = true;
  Pattern pattern_;
  BpeVocabulary vocabulary_;
  PairMerger merger_;
  std::unique_ptr<WordCache> cache_;
};

}  // namespace treadle::tokenizers
