#include <treadle/sdk.h>

#include <filesystem>
#include <optional>

#include <treadle/base/atomic_file.h>

namespace {

/// Adds one line to a file after each epoch of each training:
///
///     {"epoch":3,"fit":"fold-1","loss":0.25,"metrics":{"rmse":0.5},"run":"iris"}
///
/// "loss" is that of the validation rows, where there are any; what is not a number is null. Calls
/// come one at a time, from any thread; an observer changes nothing in the run.
class @Name@ final : public treadle::RunObserver {
 public:
  // Touches nothing: a document may be checked without being run.
  explicit @Name@(const treadle::Config& config) : path_(config.get<std::string>("path")) {}

 private:
  void do_run_started(const std::string& name, const std::string&) override {
    run_ = name;
    file_.emplace(path_);
  }

  void do_epoch_completed(const treadle::FitId& fit,
                          const treadle::EpochSummary& summary) override {
    nlohmann::json metrics = nlohmann::json::object();
    for (const treadle::MetricValue& metric : summary.metrics)
      metrics[metric.name] = metric.value;
    const nlohmann::json line{{"run", run_},
                              {"fit", fit.path()},
                              {"epoch", summary.epoch},
                              {"loss", summary.val_loss.value_or(summary.train_loss)},
                              {"metrics", std::move(metrics)}};
    file_->append_line(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }

  std::filesystem::path path_;
  std::string run_;
  std::optional<treadle::AppendFile> file_;
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
