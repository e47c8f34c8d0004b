#include <treadle/sdk.h>

#include <ATen/ops/bincount.h>
#include <ATen/ops/zeros.h>

namespace {

/// (1 - w) p + w s, with the shares s of the classes among held-out rows, by weight. One object per
/// target: fitted by one thread, then applied by several, which only read `shares_`.
class @Name@ final : public treadle::OutputStage {
 public:
  explicit @Name@(const treadle::Config& config) : weight_(config.get<double>("weight")) {}

 private:
  void do_start(const treadle::TargetSpec& target) override {
    if (target.kind != treadle::TargetKind::kClasses) {
      throw treadle::DataError("output \"@name@\" needs classes, but the target \"" + target.name +
                               "\" has none; use conformal for numbers");
    }
    shares_ = at::zeros({target.class_count()}, at::kDouble);
  }

  void do_fit(const treadle::Prediction&, const treadle::TargetBatch& target) override {
    const at::Tensor classes = target.values().reshape(-1);
    const at::Tensor weights =
        target.weights().defined() ? target.weights().reshape(-1).to(at::kDouble) : at::Tensor();
    const at::Tensor counts = at::bincount(classes, weights, shares_.size(0)).to(at::kDouble);
    shares_ = counts / counts.sum();
  }

  treadle::Prediction do_apply(treadle::Prediction prediction,
                               const treadle::Batch&) const override {
    // Not in place: the tensors are the caller's.
    const at::Tensor values = prediction.values.to(at::kDouble) * (1 - weight_) + shares_ * weight_;
    prediction.values = values.to(prediction.values.scalar_type());
    // They no longer belong to the probabilities.
    prediction.logits = at::Tensor();
    return prediction;
  }

  std::vector<treadle::MetricValue> do_learned() const override {
    return {{"largest_share", shares_.max().item<double>()}};
  }

  treadle::StateDict do_state() const override {
    treadle::StateDict state;
    state.put("shares", shares_);
    return state;
  }
  void do_load_state(const treadle::StateDict& state) override {
    const at::Tensor& stored = state.tensor("shares");
    if (stored.sizes() != shares_.sizes())
      throw treadle::StorageError("the shares belong to data with another number of classes");
    shares_ = stored;
  }

  double weight_;
  at::Tensor shares_;  // float64 [classes]
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
