#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/host/run/runtime.h>

namespace treadle {

/// How a text is continued. Names and meanings are those of Hugging Face's generation.
struct GenerationOptions {
  std::int64_t max_new_tokens = 200;
  /// Divides the logits: less than 1 is more sure of itself; 0 always takes the likeliest token.
  double temperature = 1;
  std::int64_t top_k = 0;  ///< draw from so many of the likeliest tokens; 0: from all
  double top_p = 1;        ///< draw from the likeliest tokens whose probabilities add up to this
  std::uint64_t seed = 0;  ///< the same seed, the same text
  std::vector<std::string> stop_strings;  ///< the text ends in front of the first of them
  bool use_cache = true;  ///< where the model can; the text is the same up to rounding
  std::stop_token stop;   ///< checked before each token
};

struct GeneratedText {
  enum class End { kLength, kEndOfText, kStopString, kStopped };
  std::string text;         ///< what follows the prompt
  std::int64_t tokens = 0;  ///< how many were drawn
  End end = End::kLength;
  bool used_cache = false;
};

/// A finished run's language model, ready to write: a model whose data are tokens, and whose target
/// is the next one.
///
/// The model sees the tokens before, at most as many as a sample of its training had; of a training
/// on texts of any length as many as its positions allow, at most 1024. Where its layers can be
/// evaluated step by step, and a trial on random tokens has shown that this gives the results of
/// whole texts, it keeps what they need of the tokens before until that many are there. generate()
/// may be called from several threads.
class Generator {
 public:
  /// As Predictor::load(). Throws UsageError where the run's model does not predict tokens.
  static Generator load(const Runtime& runtime, const std::filesystem::path& saved,
                        const std::string& device = "auto");
  ~Generator();
  Generator(Generator&&) noexcept;

  /// Continues `prompt`, which may be empty where texts begin with a token of their own. `write` is
  /// given each piece of the text when it is settled, whole characters of UTF-8 where the text is.
  /// Throws a DataError for a prompt that the vocabulary cannot express, UsageError for options
  /// that make no sense.
  GeneratedText generate(std::string_view prompt, const GenerationOptions& options,
                         const std::function<void(std::string_view)>& write = {}) const;

 private:
  struct Impl;
  explicit Generator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace treadle
