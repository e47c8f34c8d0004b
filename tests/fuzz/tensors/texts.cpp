#include <array>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include <treadle/core/components/plugin_registry.h>

#include "bytes.h"
#include "characters.h"
#include "memory_file.h"
#include "rows.h"
#include "targets.h"
#include "text_data.h"
#include "words.h"

namespace treadle::fuzz {
namespace {

using Json = nlohmann::json;
using Purpose = OpenRequest::Purpose;

/// Documents that a stranger's texts are given to: text, lines and JSON Lines.
const std::array<Json, 5>& text_readings() {
  static const Json bytes{{"use", "bytes"}, {"end_of_text", false}};
  static const Json characters{{"use", "characters"}, {"unknown", "token"}, {"end_of_text", true}};
  static const Json words{
      {"use", "words"}, {"lowercase", true}, {"min_count", 1}, {"end_of_text", false}};
  static const std::array<Json, 5> all{
      Json{{"format", "text"}, {"tokenizer", characters}},
      Json{{"format", "lines"}, {"tokenizer", bytes}, {"rows", "documents"}, {"max_length", 64}},
      Json{{"format", "jsonl"}, {"tokenizer", characters}},
      Json{{"format", "jsonl"}, {"tokenizer", words}, {"target", "target"}, {"max_length", 64}},
      Json{{"format", "jsonl"}, {"tokenizer", bytes}, {"target", "target"}, {"max_length", 64}}};
  return all;
}

template <typename Class>
void add(PluginRegistry& registry, std::string_view name) {
  registry.add<Tokenizer>(name, [](const Config& config, const ComponentContext&) {
    return std::make_unique<Class>(config);
  });
}

const PluginRegistry& tokenizer_registry() {
  static const auto made = [] {
    auto registry = std::make_unique<PluginRegistry>();
    add<tokenizers::Bytes>(*registry, "bytes");
    add<tokenizers::Characters>(*registry, "characters");
    add<tokenizers::Words>(*registry, "words");
    return registry;
  }();
  return *made;
}

text::TextData texts_in(Json parameters, const MemoryFile& file) {
  parameters["path"] = file.path().string();
  parameters["text_key"] = "text";
  return text::TextData(Config(parameters, "/data"), {&tokenizer_registry()});
}

void read_texts(const Json& parameters, const MemoryFile& file, const MemoryFile& other,
                std::size_t size) {
  std::string refusal;
  text::TextData data = texts_in(parameters, file);
  if (!opens(data, {}, size, refusal))
    return;
  const ReadRows rows = read_rows(data);

  text::TextData again = texts_in(parameters, file);
  again.load_state(data.state());
  OpenRequest request;
  request.purpose = Purpose::kEvaluate;
  promise(opens(again, request, size, refusal), "what was trained on can be evaluated: " + refusal);
  promise(read_rows(again) == rows, "texts have the same rows when they are read again");

  text::TextData unlabelled = texts_in(parameters, file);
  unlabelled.load_state(data.state());
  request.purpose = Purpose::kPredict;
  promise(opens(unlabelled, request, size, refusal),
          "what was trained on can be predicted: " + refusal);
  read_rows(unlabelled);

  for (const Purpose purpose : {Purpose::kEvaluate, Purpose::kPredict}) {
    text::TextData elsewhere = texts_in(parameters, other);
    elsewhere.load_state(data.state());
    request.purpose = purpose;
    if (opens(elsewhere, request, size, refusal))
      read_rows(elsewhere);
  }
}

}  // namespace

void texts(std::string_view bytes) {
  std::string_view rest = bytes;
  const MemoryFile file(take_part(rest));
  const MemoryFile other(rest);
  for (const Json& reading : text_readings())
    read_texts(reading, file, other, bytes.size());
}

}  // namespace treadle::fuzz
