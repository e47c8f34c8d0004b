#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <treadle/base/component.h>
#include <treadle/core/row_reader.h>
#include <treadle/core/state_dict.h>

namespace treadle {

struct ApplyContext {
  bool training = false;   ///< augmentation acts only here
  std::uint64_t seed = 0;  ///< of this batch; depends on (run seed, epoch, batch), not on threads
};

/// Changes rows between the data and the model: standardize, one_hot, impute. Each fold and trial
/// fits its own on its own training rows; it is saved beside the weights and used again by
/// evaluate, predict and export.
///
/// Life: constructed → fit() or load_state() → apply() any number of times, from several threads at
/// once. Transforms run in the document's order; fit() sees rows as the transforms before it leave
/// them.
class Transform : public Component, public Stateful {
 public:
  static constexpr std::string_view kInterface = "treadle.transform/0";

  ~Transform() override;

  /// Learns from the given training rows only. Reads them in chunks through `reader`.
  void fit(const RowReader& reader, std::span<const std::int64_t> training_rows);

  /// What `before` becomes. Expects fit() or load_state(). Throws DataError when this transform
  /// cannot work on such data (a column it needs is not there).
  DataSpec output_spec(const DataSpec& before) const;

  /// Changes the batch in place or gives it new tensors; never reads or keeps another batch.
  /// Batch::targets may be empty. Expects fit() or load_state().
  void apply(Batch& batch, const ApplyContext& context) const;

  /// Undoes what apply() did to a target of numbers: predictions [B, positions..., width] in the
  /// model's units become the data's. Returns its argument when this transform leaves `target`
  /// alone.
  at::Tensor invert(const at::Tensor& predictions, std::string_view target) const;

 private:
  virtual void do_fit(const RowReader& reader, std::span<const std::int64_t> training_rows) = 0;
  virtual DataSpec do_output_spec(const DataSpec& before) const = 0;
  virtual void do_apply(Batch& batch, const ApplyContext& context) const = 0;
  virtual at::Tensor do_invert(const at::Tensor& predictions, std::string_view /*target*/) const {
    return predictions;
  }
};

/// Calls `visit(const Batch&)` on consecutive chunks of the given rows: how fit() reads a large
/// training set without holding a second copy of it.
template <typename Visit>
void for_each_chunk(const RowReader& reader, std::span<const std::int64_t> rows, Visit&& visit) {
  constexpr std::size_t kChunk = 8192;
  Batch batch;
  for (std::size_t begin = 0; begin < rows.size(); begin += kChunk) {
    reader.gather(rows.subspan(begin, std::min(kChunk, rows.size() - begin)), batch);
    visit(static_cast<const Batch&>(batch));
  }
}

}  // namespace treadle
