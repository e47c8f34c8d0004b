#include <treadle/sdk.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

constexpr std::int64_t kBytes = 256;

/// Digram coding: tokens 0 to 255 are the bytes, those behind them the pairs of neighbouring bytes
/// that occur most often in the training documents. A text is read from left to right, and takes a
/// pair where there is one. Takes any bytes, and gives them back.
class @Name@ final : public treadle::Tokenizer {
 public:
  explicit @Name@(const treadle::Config& config)
      : most_(config.get<std::int64_t>("pairs")), with_end_(config.get<bool>("end_of_text")) {}

 private:
  void do_fit(std::span<const std::string_view> documents) override {
    std::vector<std::int64_t> counts(kBytes * kBytes);
    for (const std::string_view text : documents) {
      for (std::size_t i = 1; i < text.size(); ++i)
        ++counts[pair_of(text[i - 1], text[i])];
    }
    // The most frequent first; of equal ones the smaller, so that two fits give one vocabulary.
    std::vector<std::pair<std::int64_t, std::int64_t>> found;
    for (std::size_t pair = 0; pair < counts.size(); ++pair) {
      if (counts[pair] > 1)
        found.emplace_back(-counts[pair], pair);
    }
    std::sort(found.begin(), found.end());
    found.resize(std::min(found.size(), static_cast<std::size_t>(most_)));
    std::vector<std::int64_t> pairs;
    for (const auto& [count, pair] : found)
      pairs.push_back(pair);
    use(std::move(pairs));
  }

  std::int64_t do_vocabulary_size() const override {
    return token_of_.empty() ? 0 : kBytes + pairs() + (with_end_ ? 1 : 0);
  }

  std::vector<std::int64_t> do_encode(std::string_view text) const override {
    std::vector<std::int64_t> tokens;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const std::int64_t pair = i + 1 < text.size() ? token_of_[pair_of(text[i], text[i + 1])] : -1;
      tokens.push_back(pair >= 0 ? pair : static_cast<unsigned char>(text[i]));
      i += pair >= 0 ? 1 : 0;
    }
    return tokens;
  }

  std::string do_decode(std::span<const std::int64_t> tokens) const override {
    std::string text;
    for (const std::int64_t token : tokens)
      text += do_token(token);
    return text;
  }

  bool do_is_exact() const override { return true; }

  std::optional<std::int64_t> do_end_of_text() const override {
    return with_end_ ? std::optional(kBytes + pairs()) : std::nullopt;
  }

  std::string do_token(std::int64_t index) const override {
    if (index < kBytes)
      return {static_cast<char>(index)};
    if (index >= kBytes + pairs())
      return "";  // the end of text
    const std::int64_t pair = pairs_[static_cast<std::size_t>(index - kBytes)];
    return {static_cast<char>(pair / kBytes), static_cast<char>(pair % kBytes)};
  }

  treadle::StateDict do_state() const override {
    treadle::StateDict state;
    state.put("pairs", nlohmann::json(pairs_));
    return state;
  }

  void do_load_state(const treadle::StateDict& state) override {
    const nlohmann::json& stored = state.value("pairs");
    const auto is_pair = [](const nlohmann::json& value) {
      return value.is_number_integer() && value >= 0 && value < kBytes * kBytes;
    };
    if (!stored.is_array() || !std::all_of(stored.begin(), stored.end(), is_pair))
      throw treadle::StorageError("the stored vocabulary of @name@ is damaged: expected pairs");
    use(stored.get<std::vector<std::int64_t>>());
  }

  static std::size_t pair_of(char left, char right) {
    return static_cast<std::size_t>(static_cast<unsigned char>(left)) * kBytes +
           static_cast<unsigned char>(right);
  }

  std::int64_t pairs() const { return static_cast<std::int64_t>(pairs_.size()); }

  void use(std::vector<std::int64_t> pairs) {
    pairs_ = std::move(pairs);
    token_of_.assign(kBytes * kBytes, -1);
    for (std::size_t i = 0; i < pairs_.size(); ++i)
      token_of_[static_cast<std::size_t>(pairs_[i])] = kBytes + static_cast<std::int64_t>(i);
  }

  std::int64_t most_;
  bool with_end_;
  std::vector<std::int64_t> pairs_;
  std::vector<std::int64_t> token_of_;  // by pair; -1: none. Empty: no vocabulary yet
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
