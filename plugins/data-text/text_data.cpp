#include "text_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/base/utf8.h>
#include <treadle/core/components/plugin_registry.h>
#include <treadle/core/data/matrix_rows.h>
#include <treadle/core/data/row_problems.h>

#include "document_rows.h"

namespace treadle::text {
namespace {

using Json = nlohmann::json;
using Numbers = std::vector<std::int64_t>;

constexpr const char* kTokens = "tokens";
constexpr const char* kNextToken = "next_token";

at::Tensor tensor_of(const Numbers& numbers) {
  return at::tensor(numbers, at::kLong);
}

/// How a class is written: a text as it is, another value as in JSON.
std::string class_name(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

[[noreturn]] void refuse_without_tokens(const Documents& documents) {
  throw DataError(documents.place_of(documents.list.front()) + ": there is no token to learn from");
}

std::map<std::string, std::int64_t, std::less<>> numbered(const std::vector<std::string>& names) {
  std::map<std::string, std::int64_t, std::less<>> numbers;
  for (std::size_t i = 0; i < names.size(); ++i)
    numbers.emplace(names[i], static_cast<std::int64_t>(i));
  return numbers;
}

/// The document of each token, and a place in its file for messages.
struct Places {
  Documents documents;  // without their texts
  Numbers firsts;       // the first token of each

  std::string of(std::int64_t row) const {
    const auto after = std::upper_bound(firsts.begin(), firsts.end(), row);
    const auto document = static_cast<std::size_t>(after - firsts.begin()) - 1;
    return "token " + std::to_string(row - firsts[document]) + " of " +
           documents.place_of(documents.list[document]);
  }
};

}  // namespace

TextData::TextData(const Config& config, const ComponentContext& context)
    : options_(config), tokenizer_(make_nested<Tokenizer>(context, config, "tokenizer")) {}

TextData::~TextData() = default;

void TextData::do_open(const OpenRequest& request) {
  const bool predicts = request.purpose == OpenRequest::Purpose::kPredict;
  if (request.purpose != OpenRequest::Purpose::kTrain && !is_described_)
    throw ContractViolation("texts for evaluation or prediction need the state of a training");
  Documents documents = read_documents(options_, !predicts);
  ContentHash hash;
  for (const Document& document : documents.list) {
    hash.update("document;");
    for (const std::string& piece : document.pieces)
      hash.update(std::to_string(piece.size()) + ";" + piece);
    hash.update(document.target.dump());
  }
  if (!is_described_)
    describe(documents, request);
  for (const std::string& name : description_.tokens)
    hash.update(name + "\n");
  hash_ = hash.digest();
  if (!documents.is_one && options_.rows_are_tokens && !description_.has_documents) {
    throw DataError("the model was trained on a single text, and there are " +
                    std::to_string(documents.list.size()) +
                    " documents here; give it one file at a time");
  }
  rows_ = options_.rows_are_tokens ? token_rows(std::move(documents), request)
                                   : document_rows(std::move(documents), request);
}

void TextData::describe(const Documents& documents, const OpenRequest& request) {
  std::vector<std::string_view> pieces;
  for (const Document& document : documents.list)
    pieces.insert(pieces.end(), document.pieces.begin(), document.pieces.end());
  try {
    tokenizer_->fit(pieces);
  } catch (const DataError& error) {
    // It was given all documents at once, so it cannot name the file of one that is not UTF-8.
    for (const Document& document : documents.list) {
      for (const std::string& piece : document.pieces) {
        if (const std::optional<std::size_t> bad = first_bad_utf8(piece)) {
          throw DataError(documents.place_of(document) + ": byte " + std::to_string(*bad) +
                          " is not UTF-8; convert the text to UTF-8, or use the tokenizer "
                          "\"bytes\"");
        }
      }
    }
    throw DataError(documents.place_of(documents.list.front()) +
                    (documents.list.size() > 1 ? " and others: " : ": ") + error.what());
  }
  description_.tokens = token_names(*tokenizer_);
  description_.has_documents = options_.rows_are_tokens && !documents.is_one;
  is_described_ = true;
  if (options_.target.empty())
    return;
  bool are_tags = false;
  bool are_numbers = true;
  bool are_whole = true;
  std::set<std::string> names;
  for (const Document& document : documents.list) {
    const Json& target = document.target;
    if (target.is_array() != documents.list.front().target.is_array()) {
      throw DataError(documents.place_of(document) + ": " + quote_text(options_.target) +
                      (target.is_array() ? " is a list" : " is no list") +
                      ", unlike that of the first document");
    }
    are_tags = target.is_array();
    are_numbers = are_numbers && target.is_number();
    are_whole = are_whole && target.is_number_integer();
    if (are_tags) {
      for (const Json& tag : target)
        names.insert(class_name(tag));
    } else {
      names.insert(class_name(target));
    }
  }
  const bool cannot_be_classes = !request.takes(options_.target, TargetKind::kClasses);
  const bool are_classes_by_task = request.task == Task::kClassification;
  if (are_tags) {
    description_.labels = Labels::kTags;
  } else if (are_numbers && !are_classes_by_task &&
             (!are_whole || cannot_be_classes || request.task == Task::kRegression)) {
    description_.labels = Labels::kNumbers;
  } else if (request.task == Task::kRegression) {
    throw DataError(documents.place_of(documents.list.front()) + ": " +
                    quote_text(options_.target) + ": the task is \"regression\", and got " +
                    describe_value(documents.list.front().target));
  } else {
    description_.labels = Labels::kClasses;
  }
  if (description_.labels != Labels::kNumbers)
    description_.names.assign(names.begin(), names.end());
}

std::vector<std::int64_t> TextData::encoded(const Documents& documents, const Document& document,
                                            std::string_view piece) const {
  try {
    return tokenizer_->encode(piece);
  } catch (const DataError& error) {
    throw DataError(documents.place_of(document) + ": " + error.what());
  }
}

PortSpec TextData::token_port(std::vector<std::int64_t> shape) const {
  PortSpec port{kTokens, std::move(shape), {}, Role::kTokens, at::kLong};
  port.vocabulary_size = tokenizer_->vocabulary_size();
  return port;
}

/// One row per token; its target is the token after it. Where documents begin with end_of_text(),
/// that is what follows the last token of a document, too. Where they do not, nothing does: the
/// last token of one weighs nothing, and that of a single text is no row.
std::unique_ptr<RowReader> TextData::token_rows(Documents documents,
                                                const OpenRequest& request) const {
  const std::optional<std::int64_t> end = tokenizer_->end_of_text();
  const bool predicts = request.purpose == OpenRequest::Purpose::kPredict;
  Numbers tokens;
  Numbers next;
  Numbers groups;
  std::vector<float> weights;
  Places places;
  for (std::size_t i = 0; i < documents.list.size(); ++i) {
    Document& document = documents.list[i];
    const std::size_t first = tokens.size();
    places.firsts.push_back(static_cast<std::int64_t>(first));
    if (end)
      tokens.push_back(*end);
    for (std::size_t k = 0; k < document.pieces.size(); ++k) {
      const Numbers some = encoded(documents, document, document.pieces[k]);
      tokens.insert(tokens.end(), some.begin(), some.end());
    }
    document.pieces.clear();
    groups.resize(tokens.size(), static_cast<std::int64_t>(i));
    if (tokens.size() == first)
      continue;
    next.insert(next.end(), tokens.begin() + static_cast<std::ptrdiff_t>(first) + 1, tokens.end());
    next.push_back(end.value_or(tokens.back()));
    weights.resize(tokens.size(), 1);
    weights.back() = end ? 1.0F : 0.0F;
  }
  if (!description_.has_documents && !end && !tokens.empty()) {
    tokens.pop_back();
    next.pop_back();
  }
  if (tokens.empty())
    refuse_without_tokens(documents);
  MatrixRows::Matrices rows;
  rows.spec.inputs = {token_port({})};
  rows.inputs = {tensor_of(tokens)};
  if (!predicts) {
    rows.spec.targets = {class_target(kNextToken, description_.tokens)};
    rows.targets = {tensor_of(next)};
  }
  if (description_.has_documents) {
    groups.resize(tokens.size());
    rows.groups = tensor_of(groups);
    if (!end && !predicts) {
      rows.spec.has_weights = true;
      rows.weights = at::tensor(weights, at::kFloat);
    }
  }
  places.documents = std::move(documents);
  rows.describe_row = [places = std::move(places)](std::int64_t row) { return places.of(row); };
  return std::make_unique<MatrixRows>(std::move(rows));
}

std::unique_ptr<RowReader> TextData::document_rows(Documents documents,
                                                   const OpenRequest& request) const {
  const bool predicts = request.purpose == OpenRequest::Purpose::kPredict;
  const std::optional<std::int64_t> end = tokenizer_->end_of_text();
  const bool is_next_token = options_.target.empty();
  const auto classes = numbered(description_.names);
  RowProblems problems;
  const auto class_of = [&](const Document& document, const Json& value) -> std::int64_t {
    const auto found = classes.find(class_name(value));
    if (found != classes.end())
      return found->second;
    problems.add([&] {
      return documents.place_of(document) + ": " + quote_text(options_.target) + ": " +
             quote_text(class_name(value)) + " is none of the classes of the training" +
             did_you_mean(class_name(value), description_.names);
    });
    return 0;
  };
  DocumentRows::Contents contents;
  contents.offsets = {0};
  bool has_weights = false;
  Numbers of_documents;
  std::vector<double> numbers;
  for (Document& document : documents.list) {
    Numbers tokens;
    Numbers tags;
    const bool has_tags = description_.labels == Labels::kTags && !predicts;
    if (has_tags && !document.target.is_array()) {
      problems.add([&] {
        return documents.place_of(document) + ": " + quote_text(options_.target) +
               ": expected a list of tags, got " + describe_value(document.target);
      });
      continue;
    }
    if (is_next_token && end)
      tokens.push_back(*end);
    for (std::size_t k = 0; k < document.pieces.size(); ++k) {
      const Numbers some = encoded(documents, document, document.pieces[k]);
      tokens.insert(tokens.end(), some.begin(), some.end());
      if (!has_tags)
        continue;
      if (some.empty()) {
        problems.add([&] {
          return documents.place_of(document) + ": string " + std::to_string(k) +
                 " has a tag, and no token: " + quote_text(document.pieces[k]);
        });
        continue;
      }
      // As usual, the first token of a word has its tag.
      tags.resize(tokens.size(), class_of(document, document.target[k]));
      contents.weights.resize(contents.tokens.size() + tokens.size(), 0);
      contents.weights[contents.tokens.size() + tokens.size() - some.size()] = 1;
      has_weights = has_weights || some.size() > 1;
    }
    document.pieces.clear();
    if (is_next_token) {
      tags.assign(tokens.begin() + (tokens.empty() ? 0 : 1), tokens.end());
      if (end) {
        tags.push_back(*end);
      } else if (!tokens.empty()) {
        tokens.pop_back();
      }
    }
    if (options_.max_length > 0 && static_cast<std::int64_t>(tokens.size()) > options_.max_length) {
      const auto length = static_cast<std::size_t>(options_.max_length);
      tokens.resize(length);
      tags.resize(std::min(tags.size(), length));
      if (!contents.weights.empty())
        contents.weights.resize(contents.tokens.size() + length);
    }
    contents.tokens.insert(contents.tokens.end(), tokens.begin(), tokens.end());
    contents.of_tokens.insert(contents.of_tokens.end(), tags.begin(), tags.end());
    contents.offsets.push_back(static_cast<std::int64_t>(contents.tokens.size()));
    if (predicts)
      continue;
    if (description_.labels == Labels::kClasses)
      of_documents.push_back(class_of(document, document.target));
    if (description_.labels == Labels::kNumbers) {
      if (!document.target.is_number()) {
        problems.add([&] {
          return documents.place_of(document) + ": " + quote_text(options_.target) +
                 ": expected a number, got " + describe_value(document.target);
        });
      }
      numbers.push_back(document.target.is_number() ? document.target.get<double>() : 0);
    }
  }
  problems.throw_if_any();
  const bool learns_tokens = is_next_token || description_.labels == Labels::kTags;
  if (learns_tokens && !predicts && contents.of_tokens.empty())
    refuse_without_tokens(documents);
  if (!has_weights)
    contents.weights.clear();
  contents.spec.inputs = {
      token_port({kVaries}),
      {std::string(kTokens) + ".lengths", {}, {}, Role::kLengths, at::kLong, 0, kTokens}};
  if (!predicts) {
    TargetSpec target =
        is_next_token ? class_target(kNextToken, description_.tokens, {kVaries})
        : description_.labels == Labels::kNumbers
            ? number_target(options_.target)
            : class_target(options_.target, description_.names,
                           description_.labels == Labels::kTags ? Numbers{kVaries} : Numbers{});
    if (target.kind == TargetKind::kClasses && !target.shape.empty())
      target.padded_like = kTokens;
    contents.spec.targets = {std::move(target)};
    if (description_.labels == Labels::kClasses)
      contents.of_documents = tensor_of(of_documents);
    if (description_.labels == Labels::kNumbers)
      contents.of_documents = at::tensor(numbers, at::kDouble).unsqueeze(1);
  }
  contents.describe_row = [documents = std::move(documents)](std::int64_t row) {
    return documents.place_of(documents.list[static_cast<std::size_t>(row)]);
  };
  return std::make_unique<DocumentRows>(std::move(contents));
}

StateDict TextData::do_state() const {
  StateDict state;
  if (!is_described_)
    return state;
  state.put("tokenizer", tokenizer_->state());
  state.put("labels", Json(static_cast<int>(description_.labels)));
  state.put("names", Json(description_.names));
  state.put("has_documents", Json(description_.has_documents));
  return state;
}

void TextData::do_load_state(const StateDict& state) {
  Description description;
  const Json& labels = state.value("labels");
  const Json& names = state.value("names");
  const Json& has_documents = state.value("has_documents");
  const bool fits =
      labels.is_number_integer() && labels >= 0 && labels <= static_cast<int>(Labels::kTags) &&
      has_documents.is_boolean() && names.is_array() &&
      std::all_of(names.begin(), names.end(), [](const Json& name) { return name.is_string(); });
  if (!fits)
    throw StorageError("stored description of the texts contradicts itself");
  description.labels = static_cast<Labels>(labels.get<int>());
  description.names = names.get<std::vector<std::string>>();
  description.has_documents = has_documents.get<bool>();
  if ((description.labels == Labels::kNone) != options_.target.empty())
    throw StorageError("stored description of the texts is of another \"target\"");
  tokenizer_->load_state(state.part("tokenizer"));
  description.tokens = token_names(*tokenizer_);
  description_ = std::move(description);
  is_described_ = true;
}

void* TextData::do_ask(std::string_view interface_id) {
  if (interface_id == RowReader::kInterface && rows_)
    return rows_.get();
  if (interface_id == Tokenizer::kInterface && is_described_)
    return tokenizer_.get();
  return nullptr;
}

}  // namespace treadle::text
