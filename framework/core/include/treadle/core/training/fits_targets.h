#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include <treadle/core/components/state_dict.h>
#include <treadle/core/data/row_list.h>
#include <treadle/core/data/row_reader.h>
#include <treadle/core/training/loss.h>

namespace treadle {

/// A loss that takes something from the targets it will be trained on, such as weights that balance
/// the classes.
///
/// An optional ability of a Loss (`loss.ask<FitsTargets>()`). Each training fits the loss to its
/// own training rows before the first step, and uses what fitted() makes: for its validation and
/// test rows, too. What fit() gave is saved with the fitted transforms, so a resumed training, and
/// a model that is evaluated later, have the same loss.
class FitsTargets {
 public:
  static constexpr std::string_view kInterface = "treadle.fits-targets/0";

  virtual ~FitsTargets();

  /// The state that the loss fits to the target `target` of these rows of `data`, which holds the
  /// data after the transforms. Empty if its parameters require none.
  StateDict fit(const RowReader& data, const RowList& rows, std::size_t target) const {
    return do_fit(data, rows, target);
  }

  /// This loss with what fit() gave. Throws StorageError for another state.
  std::unique_ptr<Loss> fitted(const StateDict& state) const { return do_fitted(state); }

 private:
  virtual StateDict do_fit(const RowReader& data, const RowList& rows,
                           std::size_t target) const = 0;
  virtual std::unique_ptr<Loss> do_fitted(const StateDict& state) const = 0;
};

}  // namespace treadle
