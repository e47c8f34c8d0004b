#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/data/tokenizer.h>

namespace treadle::sentencepiece_plugin {

/// `sentencepiece`: T. Kudo & J. Richardson, "SentencePiece: A simple and language independent
/// subword tokenizer and detokenizer for Neural Text Processing", EMNLP 2018, by its own library.
///
/// Not exact: its normalizer (NFKC, one space for several, a space in front) changes texts. The end
/// of text is the model's `</s>`, where it has one.
class SentencePiece final : public Tokenizer {
 public:
  explicit SentencePiece(const Config& config);
  ~SentencePiece() override;

 private:
  void do_fit(std::span<const std::string_view> documents) override;
  std::int64_t do_vocabulary_size() const override;
  std::vector<std::int64_t> do_encode(std::string_view text) const override;
  std::string do_decode(std::span<const std::int64_t> tokens) const override;
  bool do_is_exact() const override { return false; }
  std::optional<std::int64_t> do_end_of_text() const override;
  std::string do_token(std::int64_t index) const override;

  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  std::string trained(std::span<const std::string_view> documents) const;
  /// What is wrong with the model; empty: nothing, and it is used from now on.
  std::string use(std::string model);
  char byte_of(std::int64_t token) const;

  std::optional<std::string> file_;
  std::int64_t size_;
  std::string type_;
  double coverage_;
  bool byte_fallback_;
  std::string model_;       ///< as spm_train writes it
  void* opened_ = nullptr;  ///< of the bridge
};

}  // namespace treadle::sentencepiece_plugin
