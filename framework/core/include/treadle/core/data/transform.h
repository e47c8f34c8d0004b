#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <treadle/base/component.h>
#include <treadle/core/components/state_dict.h>
#include <treadle/core/data/data_spec.h>
#include <treadle/core/data/row_list.h>
#include <treadle/core/data/row_reader.h>

namespace treadle {

struct ApplyContext {
  bool training = false;   ///< augmentation acts only here
  std::uint64_t seed = 0;  ///< of this batch; depends on (run seed, epoch, batch), not on threads
  /// By tensor operations alone. So it is for a batch on a device, whose numbers the host cannot
  /// read, and on a CPU where the two are compared.
  bool tensors_only = false;
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
  void fit(const RowReader& reader, const RowList& training_rows);

  /// The specification after apply(). Expects fit() or load_state(). Throws DataError when this one
  /// cannot work on such data (a column it needs is not there).
  DataSpec output_spec(const DataSpec& before) const;

  /// Changes the batch in place or gives it new tensors; never reads or keeps another batch. All
  /// tensors are on the CPU, unless the transform works on a device. Tables of numbers, windows of
  /// them, and targets are float64, other numbers as the data has them: what the model is given is
  /// rounded behind the last transform. Batch::targets may be empty. Expects fit() or load_state().
  void apply(Batch& batch, const ApplyContext& context) const;

  /// Whether apply() does its work where the inputs are, once they have been sent to a device:
  /// with ApplyContext::tensors_only, and without waiting. Expects fit() or load_state().
  bool works_on_device() const;
  /// Whether apply() takes images of bytes (uint8), and leaves them bytes. In front of another
  /// transform they become numbers of the run's dtype. fit() always sees numbers.
  bool takes_bytes() const;

  /// Undoes what apply() did to a target of numbers: predictions [B, positions..., width], float64,
  /// in the model's units become the data's. On the CPU. `groups` are those of the rows, as
  /// Batch::groups has them: needed by a transform that FitsGroups. Returns its argument when this
  /// transform leaves `target` alone.
  at::Tensor invert(const at::Tensor& predictions, std::string_view target,
                    const at::Tensor& groups = {}) const;

 private:
  virtual void do_fit(const RowReader& reader, const RowList& training_rows) = 0;
  virtual DataSpec do_output_spec(const DataSpec& before) const = 0;
  virtual void do_apply(Batch& batch, const ApplyContext& context) const = 0;
  /// True only for one that changes nothing but inputs: no target, and no list of ports.
  virtual bool do_works_on_device() const { return false; }
  virtual bool do_takes_bytes() const { return false; }
  virtual at::Tensor do_invert(const at::Tensor& predictions, std::string_view /*target*/) const {
    return predictions;
  }
};

/// Calls `visit(const Batch&)` on consecutive chunks of the given rows: how fit() reads a large
/// training set without holding a second copy of it.
template <typename Visit>
void for_each_chunk(const RowReader& reader, const RowList& rows, Visit&& visit,
                    std::size_t rows_at_once = 8192) {
  Batch batch;
  std::vector<std::int64_t> some;
  for (std::size_t begin = 0; begin < rows.size(); begin += rows_at_once) {
    some.resize(std::min(rows_at_once, rows.size() - begin));
    rows.copy(begin, some);
    reader.gather(some, batch);
    visit(static_cast<const Batch&>(batch));
  }
}

}  // namespace treadle
