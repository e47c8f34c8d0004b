#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/data/tokenizer.h>

#include "pattern.h"
#include "text_table.h"

namespace treadle::tokenizers {

/// `words`: words and single other characters, the most frequent first, those of one frequency in
/// the order of their bytes. Token 0 is the unknown word.
///
/// A word is a run of letters, combining marks, digits and underscores; an apostrophe between two
/// of them belongs to it ("don't"). Whitespace separates, every other code point is a token.
class Words final : public Tokenizer {
 public:
  explicit Words(const Config& config);
  ~Words() override;

 private:
  static constexpr std::int64_t kUnknown = 0;

  void do_fit(std::span<const std::string_view> documents) override;
  std::int64_t do_vocabulary_size() const override;
  std::vector<std::int64_t> do_encode(std::string_view text) const override;
  std::string do_decode(std::span<const std::int64_t> tokens) const override;
  bool do_is_exact() const override { return false; }
  std::optional<std::int64_t> do_end_of_text() const override;
  std::string do_token(std::int64_t index) const override;

  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  template <typename Each>
  void for_each_word(std::string_view text, Each&& each) const;

  bool lowercase_;
  std::optional<std::int64_t> max_vocabulary_;
  std::int64_t min_count_;
  bool with_end_;
  Pattern pattern_;
  bool is_fitted_ = false;
  TextTable words_;  ///< token 1 and so on
};

}  // namespace treadle::tokenizers
