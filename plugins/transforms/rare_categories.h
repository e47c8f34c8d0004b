#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/data/transform.h>

#include "column_choice.h"

namespace treadle::transforms {

/// `rare_categories`: categories of few training rows become one category, behind the others, which
/// keep their order. So a model has weights for those categories alone that it can learn something
/// about, and columns of thousands of categories stay small.
class RareCategories final : public Transform {
 public:
  explicit RareCategories(const Config& config);
  ~RareCategories() override;

 private:
  /// What the categories of a column become.
  struct Merged {
    std::vector<std::int64_t> codes;  // of a missing value, and of each category
    std::vector<std::string> categories;
  };

  std::vector<std::vector<bool>> choose(const DataSpec& spec) const;
  Merged merged(const std::vector<std::int64_t>& counts, const Column& column) const;
  void prepare();

  void do_fit(const RowReader& reader, const RowList& training_rows) override;
  DataSpec do_output_spec(const DataSpec& before) const override;
  void do_apply(Batch& batch, const ApplyContext& context) const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  ColumnChoice choice_;
  std::int64_t min_count_;
  std::int64_t max_categories_;
  std::string name_;
  DataSpec before_;              // inputs only
  std::vector<PortSpec> after_;  // the same with their categories
  // One per input, undefined for those without categories. The new codes of all columns, one after
  // the other: int64 [all categories, and one per column for a missing value].
  std::vector<at::Tensor> codes_;
  std::vector<at::Tensor> offsets_;  // int64 [columns]: code + offset is the place in the codes
};

}  // namespace treadle::transforms
