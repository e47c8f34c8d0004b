#include <treadle/sdk.h>

#include <ATen/ops/empty.h>
#include <ATen/ops/where.h>

namespace {

/// sign(x) * log(1 + |x| / scale) of every number, and of number targets where that is asked for
/// (the inverse is sign(y) * scale * (exp(|y|) - 1)). Missing values stay missing.
///
/// fit() notes which columns are numbers; apply() and invert() are const and are called from
/// several threads at once.
class @Name@ final : public treadle::Transform {
 public:
  explicit @Name@(const treadle::Config& config)
      : scale_(config.get<double>("scale")), with_target_(config.get<bool>("target")) {}

 private:
  void do_fit(const treadle::RowReader& reader, std::span<const std::int64_t>) override {
    expect_numbers(reader.spec().target);
    std::vector<std::vector<bool>> numbers;
    for (const treadle::PortSpec& port : reader.spec().inputs) {
      std::vector<bool>& flags = numbers.emplace_back();
      for (const treadle::Column& column : port.columns)
        flags.push_back(column.categories.empty());
    }
    set_numbers(std::move(numbers));
  }

  treadle::DataSpec do_output_spec(const treadle::DataSpec& before) const override {
    expect_numbers(before.target);
    return before;
  }

  void do_apply(treadle::Batch& batch, const treadle::ApplyContext&) const override {
    TREADLE_EXPECTS(batch.inputs.size() == masks_.size(),
                    "the batch has other inputs than the data this transform was fitted on");
    for (std::size_t port = 0; port < masks_.size(); ++port) {
      at::Tensor& values = batch.inputs[port];
      if (masks_[port].defined())
        values = at::where(masks_[port], logarithm(values), values);
    }
    // A new tensor: batch.original_targets may be the same one, and metrics judge by it.
    if (with_target_ && batch.targets.defined())
      batch.targets = logarithm(batch.targets);
  }

  at::Tensor do_invert(const at::Tensor& predictions) const override {
    if (!with_target_)
      return predictions;
    return predictions.abs().expm1().mul(scale_).mul(predictions.sign());
  }

  treadle::StateDict do_state() const override {
    treadle::StateDict state;
    state.put("numbers", nlohmann::json(numbers_));
    return state;
  }
  void do_load_state(const treadle::StateDict& state) override {
    try {
      set_numbers(state.value("numbers").get<std::vector<std::vector<bool>>>());
    } catch (const nlohmann::json::exception& error) {
      throw treadle::StorageError(std::string("saved columns of @name@ cannot be read: ") +
                                  error.what());
    }
  }

  at::Tensor logarithm(const at::Tensor& values) const {
    return values.abs().div(scale_).log1p().mul(values.sign());
  }

  void expect_numbers(const treadle::TargetSpec& target) const {
    if (with_target_ && target.kind == treadle::TargetKind::kClasses) {
      throw treadle::DataError("@name@: \"target\": true needs number targets, but the target \"" +
                               target.name + "\" is classes");
    }
  }

  void set_numbers(std::vector<std::vector<bool>> numbers) {
    numbers_ = std::move(numbers);
    masks_.clear();
    for (const std::vector<bool>& flags : numbers_) {
      at::Tensor& mask = masks_.emplace_back();
      if (flags.empty())
        continue;
      mask = at::empty({static_cast<std::int64_t>(flags.size())}, at::kBool);
      std::copy(flags.begin(), flags.end(), mask.data_ptr<bool>());
    }
  }

  double scale_;
  bool with_target_;
  std::vector<std::vector<bool>> numbers_;  // by column; empty for an input that is no table
  std::vector<at::Tensor> masks_;  // of numbers_: bool [columns], or undefined
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
