#include "bridge.h"

#include <algorithm>
#include <exception>
#include <locale>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

namespace treadle::sentencepiece_plugin {
namespace {

namespace spm = ::sentencepiece;

/// SentencePiece's own, or Abseil's from version 0.2.2 on.
using Status = decltype(std::declval<const spm::SentencePieceProcessor&>().status());

/// The lines of the caller, one at a time.
class Lines final : public spm::SentenceIterator {
 public:
  explicit Lines(std::span<const std::string_view> lines) : lines_(lines) { read(); }

  bool done() const override { return at_ >= lines_.size(); }
  void Next() override {
    ++at_;
    read();
  }
  const std::string& value() const override { return line_; }
  Status status() const override { return {}; }

 private:
  void read() {
    if (!done())
      line_ = lines_[at_];
  }

  std::span<const std::string_view> lines_;
  std::size_t at_ = 0;
  std::string line_;
};

template <typename Call>
bool done(BytesSink error, Call&& call) noexcept {
  try {
    const Status status = call();
    if (!status.ok())
      error(status.ToString());
    return status.ok();
  } catch (const std::exception& thrown) {
    error(thrown.what());
  } catch (...) {
    error("something that is not derived from std::exception");
  }
  return false;
}

const spm::SentencePieceProcessor& processor(const void* model) {
  return *static_cast<const spm::SentencePieceProcessor*>(model);
}

bool train(const TrainingOptions& options, std::span<const std::string_view> lines, BytesSink model,
           BytesSink error) noexcept {
  return done(error, [&] {
    // Longer lines than this are left out, and its default is 4192 bytes.
    std::size_t longest = 4192;
    for (const std::string_view line : lines)
      longest = std::max(longest, line.size() + 1);
    std::ostringstream coverage;  // std::to_string() writes what the locale has for a point
    coverage.imbue(std::locale::classic());
    coverage << options.character_coverage;
    const std::unordered_map<std::string, std::string> settings = {
        {"model_type", std::string(options.model_type)},
        {"vocab_size", std::to_string(options.vocabulary_size)},
        {"hard_vocab_limit", "false"},
        {"character_coverage", coverage.str()},
        {"byte_fallback", options.byte_fallback ? "true" : "false"},
        {"max_sentence_length", std::to_string(longest)},
        {"unk_id", "0"},
        {"bos_id", "-1"},
        {"eos_id", "1"},
        {"pad_id", "-1"},
        // The same pieces in every run, and nothing on the terminal.
        {"num_threads", "1"},
        {"minloglevel", "3"}};
    Lines source(lines);
    std::string trained;
    const Status status = spm::SentencePieceTrainer::Train(settings, &source, &trained);
    if (status.ok())
      model(trained);
    return status;
  });
}

void* open(std::string_view model, BytesSink error) noexcept {
  std::unique_ptr<spm::SentencePieceProcessor> opened;
  const bool is_open = done(error, [&] {
    opened = std::make_unique<spm::SentencePieceProcessor>();
    return opened->LoadFromSerializedProto({model.data(), model.size()});
  });
  return is_open ? opened.release() : nullptr;
}

void close(void* model) noexcept {
  delete static_cast<spm::SentencePieceProcessor*>(model);
}

std::int64_t size(const void* model) noexcept {
  return processor(model).GetPieceSize();
}

std::int64_t end_of_text(const void* model) noexcept {
  return processor(model).eos_id();
}

PieceKind kind(const void* model, std::int64_t token) noexcept {
  const int id = static_cast<int>(token);
  if (processor(model).IsByte(id))
    return PieceKind::kByte;
  if (processor(model).IsUnknown(id))
    return PieceKind::kUnknown;
  return processor(model).IsControl(id) ? PieceKind::kControl : PieceKind::kText;
}

bool piece(const void* model, std::int64_t token, BytesSink text, BytesSink error) noexcept {
  return done(error, [&] {
    text(processor(model).IdToPiece(static_cast<int>(token)));
    return Status();
  });
}

bool encode(const void* model, std::string_view text, BytesSink tokens, BytesSink error) noexcept {
  return done(error, [&] {
    std::vector<int> ids;
    const Status status = processor(model).Encode({text.data(), text.size()}, &ids);
    tokens({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(int)});
    return status;
  });
}

bool decode(const void* model, std::span<const int> tokens, BytesSink text,
            BytesSink error) noexcept {
  return done(error, [&] {
    std::string decoded;
    const Status status =
        processor(model).Decode(std::vector<int>(tokens.begin(), tokens.end()), &decoded);
    text(decoded);
    return status;
  });
}

}  // namespace
}  // namespace treadle::sentencepiece_plugin

extern "C" __attribute__((visibility("default"))) const treadle::sentencepiece_plugin::Bridge*
treadle_sentencepiece_bridge_v1() {
  using namespace treadle::sentencepiece_plugin;
  static const Bridge bridge{train, open, close, size, end_of_text, kind, piece, encode, decode};
  return &bridge;
}
