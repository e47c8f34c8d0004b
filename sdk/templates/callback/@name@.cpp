#include <optional>
#include <string>
#include <vector>

#include <treadle/core/training/training_callback.h>
#include <treadle/plugin.h>

namespace {

/// A callback to begin from: ends the training once its loss has grown several epochs in a row.
///
/// One object per training, on the training thread. What it remembers is part of each checkpoint.
class @Name@ final : public treadle::TrainingCallback {
 public:
  explicit @Name@(const treadle::Config& config)
      : most_(config.get<std::int64_t>("epochs_in_a_row")) {}

 private:
  std::vector<std::string> do_log_names() const override { return {"@name@.growing"}; }

  void do_after_epoch(const treadle::EpochSummary& epoch,
                      treadle::TrainingControl& control) override {
    const bool grows = last_loss_ && epoch.train_loss > *last_loss_;
    growing_ = grows ? growing_ + 1 : 0;
    last_loss_ = epoch.train_loss;
    control.log("@name@.growing", static_cast<double>(growing_));
    // A refit is trained to its end, whatever happens.
    if (growing_ >= most_ && !control.is_refit())
      control.stop("the loss has grown for " + std::to_string(growing_) + " epochs");
  }

  treadle::StateDict do_state() const override {
    treadle::StateDict state;
    state.put("growing", nlohmann::json(growing_));
    if (last_loss_)
      state.put_number("last_loss", *last_loss_);
    return state;
  }

  void do_load_state(const treadle::StateDict& state) override {
    growing_ = state.value("growing").get<std::int64_t>();
    if (state.has_value("last_loss"))
      last_loss_ = state.number("last_loss");
  }

  std::int64_t most_;
  std::int64_t growing_ = 0;  // epochs in a row
  std::optional<double> last_loss_;
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
