#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/transform.h>

#include "column_choice.h"

namespace treadle::transforms {

/// `one_hot`: each category becomes columns "color=red", "color=green", … in its place, 1 where the
/// row has that value, else 0. Learns nothing from the rows: categories belong to the data set.
class OneHot final : public Transform {
 public:
  explicit OneHot(const Config& config) : choice_(config, "one_hot") {}
  ~OneHot() override;

 private:
  /// How the columns of one port are made; undefined tensors when the port stays as it is. Column j
  /// is column source[j] of the batch, or whether that equals code[j] where is_code[j].
  struct Expansion {
    at::Tensor source;   // int64 [columns after]
    at::Tensor is_code;  // bool [columns after]
    at::Tensor code;     // float32 [columns after]; indices of categories are exact
  };

  std::vector<std::vector<bool>> choose(const DataSpec& spec) const;
  void prepare(const DataSpec& before);

  void do_fit(const RowReader& reader, std::span<const std::int64_t> training_rows) override;
  DataSpec do_output_spec(const DataSpec& before) const override;
  void do_apply(Batch& batch, const ApplyContext& context) const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  ColumnChoice choice_;
  DataSpec before_;  // inputs only
  std::vector<Expansion> expansions_;
};

}  // namespace treadle::transforms
