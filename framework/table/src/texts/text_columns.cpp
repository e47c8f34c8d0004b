#include "texts/text_columns.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/utf8.h>

#include "texts/table_texts.h"

namespace treadle::table {
namespace {

std::string part_name(std::size_t text) {
  return "texts." + std::to_string(text);
}

DataError at_row(const TableSource& source, const Table& table, std::size_t row,
                 const std::string& column, const std::string& message) {
  const std::int64_t position = table.positions->position_of(static_cast<std::int64_t>(row));
  return DataError(source.place_of(position) + ": column " + quote_text(column) + ": " + message);
}

}  // namespace

/// The tokens of all rows, one after the other.
struct TextColumns::Encoded {
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> lengths;  // of each row

  /// [N, longest], at least one wide; padded with zeros.
  at::Tensor padded() const {
    const auto rows = static_cast<std::int64_t>(lengths.size());
    const std::int64_t width =
        lengths.empty()
            ? 1
            : std::max<std::int64_t>(1, *std::max_element(lengths.begin(), lengths.end()));
    at::Tensor all = at::zeros({rows, width}, at::kLong);
    auto* to = all.data_ptr<std::int64_t>();
    const std::int64_t* from = tokens.data();
    for (const std::int64_t length : lengths) {
      std::copy(from, from + length, to);
      from += length;
      to += width;
    }
    return all;
  }
};

TextColumns::TextColumns(const std::vector<TextOption>& options,
                         std::vector<std::unique_ptr<Tokenizer>> tokenizers)
    : tokenizers_(std::move(tokenizers)) {
  TREADLE_EXPECTS(options.size() == tokenizers_.size(), "each column of texts has a tokenizer");
  for (const TextOption& option : options)
    longest_.push_back(option.max_length);
}

void TextColumns::fit(const TableSource& source, const Table& table,
                      const std::vector<std::vector<std::string>>& texts) {
  for (std::size_t text = 0; text < tokenizers_.size(); ++text) {
    const std::string& column = table.description.layout.texts[text].name;
    const std::vector<std::string_view> rows(texts[text].begin(), texts[text].end());
    try {
      tokenizers_[text]->fit(rows);
    } catch (const DataError& error) {
      // It was given all rows at once, so it cannot name the one that is not UTF-8.
      for (std::size_t row = 0; row < rows.size(); ++row) {
        if (const auto bad = first_bad_utf8(rows[row])) {
          throw at_row(source, table, row, column,
                       "byte " + std::to_string(*bad) +
                           " is not UTF-8; convert the text to UTF-8, or use the tokenizer "
                           "\"bytes\"");
        }
      }
      throw DataError(source.shown() + ": column " + quote_text(column) + ": " + error.what());
    }
  }
  is_fitted_ = true;
}

TextColumns::Encoded TextColumns::encoded(std::size_t text, const TableSource& source,
                                          const Table& table,
                                          const std::vector<std::string>& rows) const {
  Encoded all;
  all.lengths.reserve(rows.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    std::vector<std::int64_t> tokens;
    try {
      tokens = tokenizers_[text]->encode(rows[row]);
    } catch (const DataError& error) {
      throw at_row(source, table, row, table.description.layout.texts[text].name, error.what());
    }
    const auto kept = std::min(static_cast<std::int64_t>(tokens.size()), longest_[text]);
    all.tokens.insert(all.tokens.end(), tokens.begin(), tokens.begin() + kept);
    all.lengths.push_back(kept);
  }
  return all;
}

void TextColumns::add_inputs(TableSource& source, Table& table) {
  if (empty())
    return;
  std::vector<std::string> names;
  for (const UsedColumn& column : table.description.layout.texts)
    names.push_back(column.name);
  TREADLE_EXPECTS(names.size() == tokenizers_.size(), "each column of texts has a tokenizer");
  source.columns();  // opens it
  const std::vector<std::vector<std::string>> texts = read_texts(source, *table.positions, names);
  if (!is_fitted_)
    fit(source, table, texts);
  MatrixRows::Matrices& matrices = table.matrices;
  for (std::size_t text = 0; text < names.size(); ++text) {
    const Encoded rows = encoded(text, source, table, texts[text]);
    PortSpec tokens{names[text], {kVaries}, {}, Role::kTokens, at::kLong};
    tokens.vocabulary_size = tokenizers_[text]->vocabulary_size();
    matrices.spec.inputs.push_back(std::move(tokens));
    matrices.inputs.push_back(rows.padded());
    matrices.spec.inputs.push_back(
        {names[text] + ".lengths", {}, {}, Role::kLengths, at::kLong, 0, names[text]});
    at::Tensor lengths = at::empty({static_cast<std::int64_t>(rows.lengths.size())}, at::kLong);
    std::copy(rows.lengths.begin(), rows.lengths.end(), lengths.data_ptr<std::int64_t>());
    matrices.inputs.push_back(std::move(lengths));
  }
}

void TextColumns::store(StateDict& state) const {
  if (!is_fitted_)
    return;
  for (std::size_t text = 0; text < tokenizers_.size(); ++text)
    state.put(part_name(text), tokenizers_[text]->state());
}

void TextColumns::load(const StateDict& state) {
  for (std::size_t text = 0; text < tokenizers_.size(); ++text)
    tokenizers_[text]->load_state(state.part(part_name(text)));
  is_fitted_ = !tokenizers_.empty();
}

}  // namespace treadle::table
