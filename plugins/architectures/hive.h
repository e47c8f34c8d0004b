#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/model/graph_builder.h>

/// Networks whose architecture is a matter of numbers and names that a search can draw.
namespace treadle::architectures {

struct CellKind;

/// Cells of several kinds beside each other, for rows of numbers [B, F] and sequences [B, T, F]:
///
///     x = activation(dense(x))                          [..., F] -> [..., width]
///     y = combine(cell_0(x), cell_1(x), …)              width, or cells · width behind `cat`
///     y = activation(dense(y))                          -> [..., width]
///
/// and a head. The cell in row r and column c is the node "cells_<r · columns + c>"; each keeps the
/// width. Cells that need sequences see a row as one position. Of sequences they see all of it, but
/// for padding where lengths [B] int64 are the reference; without `return_sequences`, `y` is the
/// mean over the positions. A gate weights cells by softmax(linear(x)), for each position.
class Hive final : public GraphBuilder {
 public:
  explicit Hive(const Config& config);

 private:
  /// How cells see the stream.
  struct Stream {
    bool is_sequence = false;
    bool has_lengths = false;
  };

  nlohmann::json do_build(const LayerSpec& spec) const override;
  Stream stream_of(const LayerSpec& spec) const;
  nlohmann::json cell(const CellKind& kind, const Stream& stream) const;
  void add_cells(nlohmann::json& steps, const Stream& stream) const;
  void add_dense(nlohmann::json& steps, const char* name) const;
  nlohmann::json merger() const;

  std::int64_t rows_;
  std::int64_t columns_;
  std::int64_t width_;
  std::int64_t heads_;
  std::string activation_;
  std::string combine_;
  bool returns_sequences_;
  bool has_head_;
  std::vector<const CellKind*> cells_;  // row by row
};

}  // namespace treadle::architectures
