#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/data/tokenizer.h>

namespace treadle::tokenizers {

/// `bytes`: token i is the byte i. Takes any bytes, also those that are not UTF-8.
class Bytes final : public Tokenizer {
 public:
  explicit Bytes(const Config& config) : with_end_(config.get<bool>("end_of_text")) {}

 private:
  static constexpr std::int64_t kBytes = 256;

  void do_fit(std::span<const std::string_view>) override { is_fitted_ = true; }
  std::int64_t do_vocabulary_size() const override {
    return is_fitted_ ? kBytes + (with_end_ ? 1 : 0) : 0;
  }
  std::vector<std::int64_t> do_encode(std::string_view text) const override;
  std::string do_decode(std::span<const std::int64_t> tokens) const override;
  bool do_is_exact() const override { return true; }
  std::optional<std::int64_t> do_end_of_text() const override {
    return with_end_ ? std::optional(kBytes) : std::nullopt;
  }
  std::string do_token(std::int64_t index) const override;

  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  bool with_end_;
  bool is_fitted_ = false;
};

}  // namespace treadle::tokenizers
