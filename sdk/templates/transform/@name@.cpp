#include <treadle/sdk.h>

namespace {

/// sign(x) * log(1 + |x| / scale) of every number, and of number targets where that is asked for
/// (the inverse is sign(y) * scale * (exp(|y|) - 1)). Missing values stay missing; padding stays 0.
///
/// fit() notes which inputs and targets are numbers; apply() and invert() are const and are called
/// from several threads at once.
class @Name@ final : public treadle::Transform {
 public:
  explicit @Name@(const treadle::Config& config)
      : scale_(config.get<double>("scale")), with_target_(config.get<bool>("target")) {}

 private:
  void do_fit(const treadle::RowReader& reader, const treadle::RowList&) override {
    before_ = reader.spec();
    check(before_);
  }

  treadle::DataSpec do_output_spec(const treadle::DataSpec& before) const override {
    check(before);
    return before;
  }

  void do_apply(treadle::Batch& batch, const treadle::ApplyContext&) const override {
    TREADLE_EXPECTS(batch.inputs.size() == before_.inputs.size(),
                    "the batch has other inputs than the data this transform was fitted on");
    for (std::size_t port = 0; port < before_.inputs.size(); ++port) {
      if (is_numbers(before_.inputs[port]))
        batch.inputs[port] = logarithm(batch.inputs[port]);
    }
    // New tensors: batch.original_targets may have the same ones, and metrics use them.
    for (std::size_t i = 0; i < batch.targets.size(); ++i) {
      if (changes(before_.targets[i]))
        batch.targets[i] = logarithm(batch.targets[i]);
    }
  }

  at::Tensor do_invert(const at::Tensor& predictions, std::string_view target) const override {
    if (!changes(before_.targets[before_.target_index(target)]))
      return predictions;
    return predictions.abs().expm1().mul(scale_).mul(predictions.sign());
  }

  treadle::StateDict do_state() const override {
    treadle::StateDict state;
    state.put("before", treadle::to_json(before_));
    return state;
  }
  void do_load_state(const treadle::StateDict& state) override {
    before_ = treadle::data_spec_from_json(state.value("before"));
  }

  /// Tensor operations work anywhere; targets are needed on the host.
  bool do_works_on_device() const override { return !with_target_; }

  at::Tensor logarithm(const at::Tensor& values) const {
    return values.abs().div(scale_).log1p().mul(values.sign());
  }

  /// Categories and tokens are integers. Images of bytes are numbers when they come here.
  static bool is_numbers(const treadle::PortSpec& port) { return c10::isFloatingType(port.dtype); }

  bool changes(const treadle::TargetSpec& target) const {
    return with_target_ && target.kind == treadle::TargetKind::kNumbers;
  }

  /// Throws a DataError for data on which nothing would change. Rows to predict on have no target.
  void check(const treadle::DataSpec& data) const {
    std::string others;
    for (const treadle::TargetSpec& target : data.targets) {
      if (target.kind == treadle::TargetKind::kNumbers)
        return;
      others += (others.empty() ? "\"" : ", \"") + target.name + "\" is " +
                std::string(treadle::name_of(target.kind));
    }
    if (with_target_ && !data.targets.empty())
      throw treadle::DataError("@name@: \"target\": true needs a target of numbers, but " + others);
  }

  double scale_;
  bool with_target_;
  treadle::DataSpec before_;  // what fit() saw
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
