#include <treadle/host/run/generator.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/random.h>
#include <treadle/base/utf8.h>
#include <treadle/core/components/plugin_registry.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/core/data/tokenizer.h>
#include <treadle/core/model/abilities/keeps_state.h>
#include <treadle/core/model/layer.h>

#include "document/document_slots.h"
#include "predict/restored_model.h"
#include "resources/run_device.h"

namespace treadle {
namespace {

using Tokens = std::vector<std::int64_t>;

/// The next token: one draw from the probabilities [V], after temperature, top-k and top-p in this
/// order. Equal probabilities are in the order of their tokens, so nothing depends on how they were
/// sorted.
std::int64_t drawn(const at::Tensor& probabilities, const GenerationOptions& options,
                   double uniform) {
  const at::Tensor wide = probabilities.to(at::kDouble).contiguous();
  const double* const p = wide.data_ptr<double>();
  const std::int64_t size = wide.numel();
  if (options.temperature == 0)
    return std::max_element(p, p + size) - p;
  Tokens order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  const auto likelier = [p](std::int64_t a, std::int64_t b) {
    return p[a] != p[b] ? p[a] > p[b] : a < b;
  };
  const std::int64_t kept = options.top_k > 0 ? std::min(options.top_k, size) : size;
  if (kept < size || options.top_p < 1) {
    std::partial_sort(order.begin(), order.begin() + kept, order.end(), likelier);
    order.resize(static_cast<std::size_t>(kept));
  }
  // p^(1/T), beside the largest: logits divided by T.
  const double largest = *std::max_element(p, p + size);
  std::vector<double> weights;
  weights.reserve(order.size());
  for (const std::int64_t token : order)
    weights.push_back(std::pow(p[token] / largest, 1 / options.temperature));
  double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (options.top_p < 1) {
    double before = 0;
    std::size_t count = 0;
    // As Hugging Face: the token that reaches top_p belongs to them.
    while (count < weights.size() && before < options.top_p * sum)
      before += weights[count++];
    weights.resize(std::max<std::size_t>(count, 1));
    sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  }
  double left = uniform * sum;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0)
      return order[i];
  }
  return order[weights.size() - 1];
}

void check(const GenerationOptions& options) {
  if (options.max_new_tokens < 0)
    throw UsageError("max_new_tokens must not be negative, got " +
                     std::to_string(options.max_new_tokens));
  if (!(options.temperature >= 0) || !std::isfinite(options.temperature))
    throw UsageError("the temperature must be 0 or more, got " +
                     std::to_string(options.temperature));
  if (options.top_k < 0)
    throw UsageError("top_k must be 0 (all tokens) or more, got " + std::to_string(options.top_k));
  if (!(options.top_p > 0 && options.top_p <= 1))
    throw UsageError("top_p must be in (0, 1], got " + std::to_string(options.top_p));
}

/// The text as it grows, and how much of it has been written: never the beginning of a character
/// whose end is missing, nor what may become a stop string.
class Writing {
 public:
  Writing(const Tokenizer& tokenizer, const std::vector<std::string>& stop_strings,
          const std::function<void(std::string_view)>& write)
      : tokenizer_(tokenizer),
        stop_strings_(stop_strings),
        write_(write),
        is_exact_(tokenizer.is_exact()) {}

  /// Whether the text goes on: false when a stop string has come up.
  bool add(std::int64_t token) {
    tokens_.push_back(token);
    // The text of a token may depend on those before it, unless the text is that of its tokens.
    if (is_exact_) {
      text_ += tokenizer_.decode(std::span(&token, 1));
    } else {
      text_ = tokenizer_.decode(tokens_);
    }
    std::size_t end = std::string::npos;
    for (const std::string& stop : stop_strings_)
      end = std::min(end, text_.find(stop, search_from(stop)));
    if (end != std::string::npos) {
      text_.resize(end);
      return false;
    }
    std::size_t held_back = 0;
    for (const std::string& stop : stop_strings_) {
      for (std::size_t length = std::min(stop.size() - 1, text_.size()); length > held_back;
           --length) {
        if (std::string_view(text_).ends_with(std::string_view(stop).substr(0, length))) {
          held_back = length;
          break;
        }
      }
    }
    write_to(whole_characters(std::string_view(text_).substr(0, text_.size() - held_back)));
    return true;
  }

  void finish() { write_to(text_.size()); }
  const std::string& text() const { return text_; }

 private:
  std::size_t search_from(const std::string& stop) const {
    return is_exact_ && written_ > stop.size() ? written_ - stop.size() : 0;
  }
  void write_to(std::size_t end) {
    if (end <= written_)
      return;
    if (write_)
      write_(std::string_view(text_).substr(written_, end - written_));
    written_ = end;
  }

  const Tokenizer& tokenizer_;
  const std::vector<std::string>& stop_strings_;
  const std::function<void(std::string_view)>& write_;
  const bool is_exact_;
  Tokens tokens_;
  std::string text_;
  std::size_t written_ = 0;
};

}  // namespace

struct Generator::Impl : internal::RestoredModel {
  Impl(const Runtime& runtime, internal::SavedModel stored)
      : RestoredModel(runtime, std::move(stored), Use::kStepByStep) {
    provider = internal::make_in<DataProvider>(runtime, components.workflow().slot("data"), "data");
    provider->load_state(saved.part("data"));
    tokenizer = provider->ask<Tokenizer>();
    expect_language_model();
    internal::within_memory_of(components.device(), [&] {
      if (context_length == kVaries)
        context_length = longest_taken();
      can_step = steps_like_whole_texts();
    });
  }

  void expect_language_model() {
    const std::string data = components.workflow().resolved.at("data").at("use").get<std::string>();
    if (tokenizer == nullptr) {
      throw UsageError("the model of this run cannot write texts: its data, " + quote_text(data) +
                       ", has no tokenizer; train on {\"use\": \"text\"}");
    }
    const std::int64_t size = tokenizer->vocabulary_size();
    const std::vector<TargetSpec>& targets = model_spec.targets;
    const bool predicts_tokens = targets.size() == 1 && targets[0].kind == TargetKind::kClasses &&
                                 targets[0].shape.size() == 1 && targets[0].class_count() == size;
    if (!predicts_tokens) {
      throw UsageError("the model of this run cannot write texts: its target, " +
                       quote_text(targets.front().name) +
                       ", is not the next token; leave \"target\" out of the data");
    }
    for (std::size_t i = 0; i < model_spec.inputs.size(); ++i) {
      const PortSpec& port = model_spec.inputs[i];
      if (port.role == Role::kTokens && port.shape.size() == 1 && !tokens_port) {
        tokens_port = i;
        context_length = port.shape[0];
      } else if (port.role != Role::kLengths && port.role != Role::kSegments) {
        throw UsageError("the model of this run cannot write texts: it takes " +
                         quote_text(port.name) + " beside the tokens");
      }
    }
    if (!tokens_port)
      throw UsageError("the model of this run cannot write texts: none of its inputs is tokens");
  }

  /// Probabilities of the next token after each of these: [length, V], on the host.
  at::Tensor probabilities(std::span<const std::int64_t> tokens, ForwardContext& context) const {
    const at::NoGradGuard no_gradients;
    const auto length = static_cast<std::int64_t>(tokens.size());
    const c10::Device device = components.device().device();
    Batch batch;
    for (std::size_t i = 0; i < model_spec.inputs.size(); ++i) {
      const bool is_lengths = model_spec.inputs[i].role == Role::kLengths;
      batch.inputs.push_back(
          (i == *tokens_port
               ? at::tensor(at::ArrayRef<std::int64_t>(tokens.data(), tokens.size()), at::kLong)
                     .unsqueeze(0)
           : is_lengths ? at::full({1}, length, at::kLong)
                        : at::zeros({1, length}, at::kLong))
              .to(device));
    }
    batch.rows = at::arange(1, at::kLong);
    Outputs outputs(objective->outputs().size());
    (*model)(batch.inputs, outputs, context);
    return objective->predictions(outputs, batch).front().values.select(0, 0).cpu();
  }

  Tokens random_tokens(std::int64_t count) const {
    RandomBits bits(1);
    const auto size = static_cast<std::uint64_t>(tokenizer->vocabulary_size());
    Tokens tokens(static_cast<std::size_t>(count));
    for (std::int64_t& token : tokens)
      token = static_cast<std::int64_t>(bits.below(size));
    return tokens;
  }

  bool takes(std::int64_t length) const {
    try {
      ForwardContext context({}, components.precision());
      probabilities(random_tokens(length), context);
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  /// Of a model that was trained on texts of any length: how many tokens it takes, as positions may
  /// have an end; no more than kLongestTried.
  std::int64_t longest_taken() const {
    constexpr std::int64_t kLongestTried = 1024;
    std::int64_t least = 1;  // taken
    std::int64_t most = 2;   // not taken, or not known
    while (most <= kLongestTried && takes(most))
      least = std::exchange(most, 2 * most);
    while (most - least > 1 && least < kLongestTried) {
      const std::int64_t middle = least + (most - least) / 2;
      (takes(middle) ? least : most) = middle;
    }
    return least;
  }

  /// A trial on random tokens: a text in three pieces, one of them a single token, gives what the
  /// whole text gives.
  bool steps_like_whole_texts() const {
    const auto* const says = dynamic_cast<const KeepsState*>(model.get());
    if (says == nullptr || !says->keeps_state())
      return false;
    constexpr std::int64_t kLongest = 256;
    const std::int64_t length = std::min(context_length, kLongest);
    if (length < 2)
      return false;
    const Tokens tokens = random_tokens(length);
    ForwardContext alone({}, components.precision());
    const at::Tensor whole = probabilities(tokens, alone);
    ForwardContext context({}, components.precision());
    const std::span<const std::int64_t> all(tokens);
    const std::size_t half = tokens.size() / 2;
    std::vector<std::pair<std::size_t, std::size_t>> pieces{{0, half}, {half, 1}};
    if (half + 1 < tokens.size())
      pieces.emplace_back(half + 1, tokens.size() - half - 1);
    // Of probabilities: what rounding makes of them.
    const double tolerance = components.precision().converts() ? 0.02 : 1e-4;
    for (const auto& [begin, count] : pieces) {
      const at::Tensor piece = probabilities(all.subspan(begin, count), context);
      const at::Tensor wanted =
          whole.narrow(0, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(count));
      if (piece.sub(wanted).abs().max().item<double>() > tolerance)
        return false;
    }
    return true;
  }

  std::unique_ptr<DataProvider> provider;
  const Tokenizer* tokenizer = nullptr;  // the provider's
  std::optional<std::size_t> tokens_port;
  std::int64_t context_length = kVaries;  // of a sample of the training, or longest_taken()
  bool can_step = false;
};

Generator::Generator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Generator::~Generator() = default;
Generator::Generator(Generator&&) noexcept = default;

Generator Generator::load(const Runtime& runtime, const std::filesystem::path& saved,
                          const std::string& device) {
  return Generator(internal::restored<Impl>(runtime, saved, device));
}

GeneratedText Generator::generate(std::string_view prompt, const GenerationOptions& options,
                                  const std::function<void(std::string_view)>& write) const {
  check(options);
  for (const std::string& stop : options.stop_strings) {
    if (stop.empty())
      throw UsageError("a stop string must not be empty");
  }
  const Impl& impl = *impl_;
  const std::optional<std::int64_t> end = impl.tokenizer->end_of_text();
  Tokens tokens = impl.tokenizer->encode(prompt);
  if (end)
    tokens.insert(tokens.begin(), *end);
  if (tokens.empty()) {
    throw UsageError(
        "the prompt is empty, and texts of this run's tokenizer have no token to begin "
        "with; give a prompt");
  }
  GeneratedText generated;
  Writing writing(*impl.tokenizer, options.stop_strings, write);
  const RandomStreams random(options.seed);
  const std::int64_t longest = impl.context_length;
  internal::within_memory_of(impl.components.device(), [&] {
    ForwardContext context(options.stop, impl.components.precision());
    std::size_t seen = 0;  // tokens that the context has
    while (generated.tokens < options.max_new_tokens) {
      if (options.stop.stop_requested()) {
        generated.end = GeneratedText::End::kStopped;
        break;
      }
      const std::span<const std::int64_t> all(tokens);
      const auto count = static_cast<std::int64_t>(tokens.size());
      const bool fits = count <= longest;
      const bool steps = options.use_cache && impl.can_step && fits;
      generated.used_cache = generated.used_cache || steps;
      at::Tensor last;
      if (steps) {
        last = impl.probabilities(all.subspan(seen), context).select(0, -1);
        seen = tokens.size();
      } else {
        ForwardContext alone(options.stop, impl.components.precision());
        const std::span<const std::int64_t> window =
            fits ? all : all.last(static_cast<std::size_t>(longest));
        last = impl.probabilities(window, alone).select(0, -1);
      }
      const auto place = static_cast<std::uint64_t>(generated.tokens);
      const std::int64_t token = drawn(last, options, random.bits("generate", {place}).uniform());
      ++generated.tokens;
      if (end == token) {
        generated.end = GeneratedText::End::kEndOfText;
        break;
      }
      tokens.push_back(token);
      if (!writing.add(token)) {
        generated.end = GeneratedText::End::kStopString;
        break;
      }
    }
  });
  writing.finish();
  generated.text = writing.text();
  return generated;
}

}  // namespace treadle
