#include "sentencepiece.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>
#include <treadle/base/utf8.h>

#include "load_bridge.h"

namespace treadle::sentencepiece_plugin {
namespace {

constexpr std::string_view kSpace = "\u2581";  // what SentencePiece writes for a space

BytesSink into(std::string& text) {
  return {[](void* to, std::string_view bytes) { static_cast<std::string*>(to)->append(bytes); },
          &text};
}

void expect_utf8(std::string_view text, const std::string& what) {
  if (const std::optional<std::size_t> bad = first_bad_utf8(text)) {
    throw DataError(what + ": byte " + std::to_string(*bad) +
                    " is not UTF-8; convert the text to UTF-8, or use the tokenizer \"bytes\"");
  }
}

/// What SentencePiece calls sentences. A line end is whitespace to it in any case.
std::vector<std::string_view> lines_of(std::span<const std::string_view> documents) {
  std::vector<std::string_view> lines;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    expect_utf8(documents[i], "document " + std::to_string(i + 1));
    for (std::string_view rest = documents[i]; !rest.empty();) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      if (end > 0)
        lines.push_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return lines;
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path))
    throw DataError(path + ": cannot be opened");
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (file.bad())
    throw DataError(path + ": cannot be read");
  return bytes;
}

}  // namespace

SentencePiece::SentencePiece(const Config& config)
    : file_(config.find<std::string>("model")),
      size_(config.get<std::int64_t>("vocabulary_size")),
      type_(config.get<std::string>("model_type")),
      coverage_(config.get<double>("character_coverage")),
      byte_fallback_(config.get<bool>("byte_fallback")) {}

SentencePiece::~SentencePiece() {
  if (opened_ != nullptr)
    bridge().close(opened_);
}

void SentencePiece::do_fit(std::span<const std::string_view> documents) {
  const std::string problem = use(file_ ? contents(*file_) : trained(documents));
  if (!problem.empty())
    throw DataError((file_ ? *file_ : std::string("the trained model")) +
                    ": is not a model of SentencePiece: " + problem);
}

std::string SentencePiece::trained(std::span<const std::string_view> documents) const {
  const std::vector<std::string_view> lines = lines_of(documents);
  if (lines.empty())
    throw DataError("the tokenizer sentencepiece: the training documents are empty");
  std::string model;
  std::string error;
  if (!bridge().train({size_, type_, coverage_, byte_fallback_}, lines, into(model), into(error))) {
    throw DataError("the tokenizer sentencepiece could not be trained with \"vocabulary_size\": " +
                    std::to_string(size_) + ": " + error +
                    "; a vocabulary needs room for each character of the documents" +
                    (byte_fallback_ ? " and 256 bytes" : "") +
                    ": set a larger one, or a lower \"character_coverage\"");
  }
  return model;
}

std::string SentencePiece::use(std::string model) {
  std::string error;
  void* const opened = bridge().open(model, into(error));
  if (opened == nullptr)
    return error.empty() ? "it cannot be read" : error;
  if (opened_ != nullptr)
    bridge().close(opened_);
  opened_ = opened;
  model_ = std::move(model);
  return "";
}

std::int64_t SentencePiece::do_vocabulary_size() const {
  return opened_ == nullptr ? 0 : bridge().size(opened_);
}

std::vector<std::int64_t> SentencePiece::do_encode(std::string_view text) const {
  expect_utf8(text, "the text cannot be encoded");
  std::vector<std::int64_t> tokens;
  std::string error;
  const BytesSink sink{[](void* to, std::string_view bytes) {
                         auto& tokens = *static_cast<std::vector<std::int64_t>*>(to);
                         for (std::size_t at = 0; at < bytes.size(); at += sizeof(int)) {
                           int token = 0;
                           std::memcpy(&token, bytes.data() + at, sizeof token);
                           tokens.push_back(token);
                         }
                       },
                       &tokens};
  if (!bridge().encode(opened_, text, sink, into(error)))
    throw DataError("SentencePiece could not encode a text: " + error);
  return tokens;
}

char SentencePiece::byte_of(std::int64_t token) const {
  std::string piece;  // <0x41>
  std::string error;
  unsigned value = 0;
  if (bridge().piece(opened_, token, into(piece), into(error)) && piece.size() == 6)
    std::from_chars(piece.data() + 3, piece.data() + 5, value, 16);
  return static_cast<char>(value);
}

std::string SentencePiece::do_decode(std::span<const std::int64_t> tokens) const {
  // SentencePiece writes U+FFFD for the beginning of a character; here it is kept as it is.
  std::size_t whole = tokens.size();
  std::string bytes;
  while (whole > 0 && bridge().kind(opened_, tokens[whole - 1]) == PieceKind::kByte)
    bytes += byte_of(tokens[--whole]);
  std::reverse(bytes.begin(), bytes.end());
  const std::size_t kept = whole_characters(bytes);
  std::string text;
  std::string error;
  const std::vector<int> ids(tokens.begin(),
                             tokens.begin() + static_cast<std::ptrdiff_t>(whole + kept));
  if (!bridge().decode(opened_, ids, into(text), into(error)))
    throw DataError("SentencePiece could not decode tokens: " + error);
  return text + bytes.substr(kept);
}

std::optional<std::int64_t> SentencePiece::do_end_of_text() const {
  const std::int64_t end = opened_ == nullptr ? -1 : bridge().end_of_text(opened_);
  return end < 0 ? std::nullopt : std::optional(end);
}

std::string SentencePiece::do_token(std::int64_t index) const {
  const PieceKind kind = bridge().kind(opened_, index);
  if (kind == PieceKind::kByte)
    return {byte_of(index)};
  if (kind != PieceKind::kText)
    return "";
  std::string text;
  std::string error;
  if (!bridge().piece(opened_, index, into(text), into(error)))
    throw DataError("SentencePiece could not name a token: " + error);
  for (std::size_t at = 0; (at = text.find(kSpace, at)) != text.npos; ++at)
    text.replace(at, kSpace.size(), " ");
  return text;
}

StateDict SentencePiece::do_state() const {
  const at::Tensor bytes = at::empty({static_cast<std::int64_t>(model_.size())}, at::kByte);
  if (!model_.empty())
    std::memcpy(bytes.data_ptr<std::uint8_t>(), model_.data(), model_.size());
  StateDict state;
  state.put("model", bytes);
  // A model that is cut off between two of its pieces reads as a smaller one.
  state.put("hash", nlohmann::json(hash_text(model_)));
  return state;
}

void SentencePiece::do_load_state(const StateDict& state) {
  const at::Tensor& stored = state.tensor("model");
  std::string problem = "\"model\" is not a list of bytes";
  if (stored.defined() && stored.scalar_type() == at::kByte && stored.dim() == 1) {
    const at::Tensor bytes = stored.cpu().contiguous();
    std::string model(reinterpret_cast<const char*>(bytes.data_ptr<std::uint8_t>()),
                      static_cast<std::size_t>(bytes.numel()));
    problem =
        state.value("hash") == hash_text(model) ? use(std::move(model)) : "its hash is another one";
  }
  if (!problem.empty())
    throw StorageError("the stored model of the tokenizer sentencepiece is damaged: " + problem);
}

}  // namespace treadle::sentencepiece_plugin
