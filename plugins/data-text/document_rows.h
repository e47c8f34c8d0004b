#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <treadle/core/data/data_spec.h>
#include <treadle/core/data/row_reader.h>

namespace treadle::text {

/// A document per row: its tokens, padded with zeros to the longest of a batch, their number, and
/// its target. Tokens lie one after the other, so long documents cost short ones nothing.
class DocumentRows final : public RowReader {
 public:
  struct Contents {
    /// Inputs: tokens {kVaries} and their lengths. At most one target: a class {} or numbers {1}
    /// per document, or classes {kVaries} per token, padded like the tokens.
    DataSpec spec;
    std::vector<std::int64_t> tokens;
    std::vector<std::int64_t> offsets;    ///< of each document, and the number of tokens
    std::vector<std::int64_t> of_tokens;  ///< a class per token, or empty
    std::vector<float> weights;           ///< of each token, or empty: 1 each
    at::Tensor of_documents;              ///< [N] or [N, 1], or undefined
    std::function<std::string(std::int64_t row)> describe_row;
  };

  explicit DocumentRows(Contents contents) : contents_(std::move(contents)) {}
  ~DocumentRows() override;

 private:
  const DataSpec& do_spec() const override { return contents_.spec; }
  std::int64_t do_rows() const override {
    return static_cast<std::int64_t>(contents_.offsets.size()) - 1;
  }
  void do_gather(std::span<const std::int64_t> rows, Batch& out) const override;
  at::Tensor do_targets(std::size_t target) const override;
  at::Tensor do_position_weights(std::size_t target) const override;
  at::Tensor do_lengths(std::size_t input) const override;
  std::string do_describe_row(std::int64_t row) const override {
    return contents_.describe_row(row);
  }

  std::int64_t length(std::int64_t row) const {
    const auto i = static_cast<std::size_t>(row);
    return contents_.offsets[i + 1] - contents_.offsets[i];
  }
  std::int64_t longest(std::span<const std::int64_t> rows) const;
  void gather_targets(std::span<const std::int64_t> rows, std::int64_t width,
                      at::Tensor& out) const;
  void gather_weights(std::span<const std::int64_t> rows, std::int64_t width,
                      at::Tensor& out) const;
  std::vector<std::int64_t> all() const;

  const Contents contents_;
};

}  // namespace treadle::text
