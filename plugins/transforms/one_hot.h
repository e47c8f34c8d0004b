#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/data/transform.h>

#include "column_choice.h"

namespace treadle::transforms {

/// `one_hot`: each category becomes columns "color=red", "color=green", … behind those of the port
/// of features it belongs to, 1 where the row has that value, else 0. Without such a port they are
/// one. Learns nothing from the rows: categories belong to the data set.
class OneHot final : public Transform {
 public:
  explicit OneHot(const Config& config) : choice_(config, "one_hot") {}
  ~OneHot() override;

 private:
  /// The columns that come from one port of categories: column j is whether column source[j] of the
  /// batch equals code[j].
  struct Expansion {
    std::size_t port = 0;
    at::Tensor source;  // int64 [columns after]
    at::Tensor code;    // likewise
  };
  /// How one port is made.
  struct Output {
    PortSpec spec;
    std::optional<std::size_t> port;  // the one it was; absent: a new one
    at::Tensor kept;                  // of categories: int64, the columns that stay; else undefined
    std::vector<Expansion> expansions;  // their columns come last
  };

  std::vector<Output> outputs_for(const DataSpec& before) const;
  void prepare(const DataSpec& before);

  void do_fit(const RowReader& reader, const RowList& training_rows) override;
  DataSpec do_output_spec(const DataSpec& before) const override;
  void do_apply(Batch& batch, const ApplyContext& context) const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  ColumnChoice choice_;
  DataSpec before_;  // inputs only
  std::vector<Output> outputs_;
};

}  // namespace treadle::transforms
