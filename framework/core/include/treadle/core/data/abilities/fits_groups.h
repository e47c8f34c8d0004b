#pragma once

#include <string_view>

#include <ATen/core/Tensor.h>

namespace treadle {

/// A transform with statistics for each group (series) of the data: a scale of its own for a series
/// of thousands and for one of tenths.
///
/// An optional ability of a Transform (`transform.ask<FitsGroups>()`); null where its parameters
/// ask for one set of statistics. apply() reads Batch::groups, and invert() is called here in place
/// of Transform::do_invert(). Both throw a DataError for rows without groups, or of a group that
/// they do not know. The framework checks the rows before, and names their groups.
///
/// Groups are known by their numbers in the training data. The framework saves their names, and
/// gives the rows of another file the training's numbers.
class FitsGroups {
 public:
  static constexpr std::string_view kInterface = "treadle.fits-groups/0";

  virtual ~FitsGroups();

  /// The groups it was fitted to, ascending: int64 [G]. Expects fit() or load_state().
  at::Tensor groups() const { return do_groups(); }

  /// Whether rows of other groups are changed as well, by statistics of all training rows.
  bool takes_other_groups() const { return do_takes_other_groups(); }

  /// Transform::invert() for rows of these groups, int64 [B].
  at::Tensor invert(const at::Tensor& predictions, std::string_view target,
                    const at::Tensor& groups) const {
    return do_invert_groups(predictions, target, groups);
  }

 private:
  virtual at::Tensor do_groups() const = 0;
  virtual bool do_takes_other_groups() const = 0;
  virtual at::Tensor do_invert_groups(const at::Tensor& predictions, std::string_view target,
                                      const at::Tensor& groups) const = 0;
};

}  // namespace treadle
