#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <treadle/core/components/state_dict.h>
#include <treadle/core/data/tokenizer.h>

#include <treadle/table/table_options.h>
#include <treadle/table/table_source.h>

#include "table_reader.h"

namespace treadle::table {

/// The columns of a table that are free text. Each becomes two inputs behind the others: its
/// tokens, under the column's name, and their number.
///
/// Owns a tokenizer for each. A vocabulary is made of all rows of the training data, those that
/// validate included, as is usual for tokenizers: they have no targets.
class TextColumns {
 public:
  /// `tokenizers`: one for each of the options.
  TextColumns(const std::vector<TextOption>& options,
              std::vector<std::unique_ptr<Tokenizer>> tokenizers);

  bool empty() const { return tokenizers_.empty(); }

  /// Adds the inputs of the rows that `table` keeps: int64 [N, longest], padded with zeros, and
  /// int64 [N]. Reads `source` from its beginning. A missing text is an empty one. Makes the
  /// vocabularies where there are none. Throws DataError with the place of a text that cannot be
  /// encoded.
  void add_inputs(TableSource& source, Table& table);

  /// Nothing without a vocabulary.
  void store(StateDict& state) const;
  /// Throws StorageError.
  void load(const StateDict& state);

 private:
  struct Encoded;

  void fit(const TableSource& source, const Table& table,
           const std::vector<std::vector<std::string>>& texts);
  Encoded encoded(std::size_t text, const TableSource& source, const Table& table,
                  const std::vector<std::string>& rows) const;

  std::vector<std::int64_t> longest_;  // in tokens, of each column
  std::vector<std::unique_ptr<Tokenizer>> tokenizers_;
  bool is_fitted_ = false;
};

}  // namespace treadle::table
