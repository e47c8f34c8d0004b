#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/data/tokenizer.h>

namespace treadle::tokenizers {

/// `characters`: the code points of the training documents in ascending order, then the token for
/// unknown ones and the end of text where they are wanted.
class Characters final : public Tokenizer {
 public:
  explicit Characters(const Config& config);
  ~Characters() override;

 private:
  void do_fit(std::span<const std::string_view> documents) override;
  std::int64_t do_vocabulary_size() const override;
  std::vector<std::int64_t> do_encode(std::string_view text) const override;
  std::string do_decode(std::span<const std::int64_t> tokens) const override;
  bool do_is_exact() const override { return !with_unknown_; }
  std::optional<std::int64_t> do_end_of_text() const override;
  std::string do_token(std::int64_t index) const override;

  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  std::int64_t characters() const { return static_cast<std::int64_t>(characters_.size()); }
  void index();

  bool with_unknown_;
  bool with_end_;
  std::vector<char32_t> characters_;  ///< ascending; empty: no vocabulary
  std::unordered_map<char32_t, std::int64_t> numbers_;
};

}  // namespace treadle::tokenizers
