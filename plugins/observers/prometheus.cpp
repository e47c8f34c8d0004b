#include "prometheus.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include <treadle/base/atomic_file.h>
#include <treadle/base/json_words.h>
#include <treadle/base/path_words.h>

namespace treadle::observers {
namespace {

constexpr std::string_view kSuffix = ".prom";

// The format has its own words for what is not finite; else the shortest text that reads back as
// the same number.
std::string number_text(double value) {
  if (std::isnan(value))
    return "NaN";
  if (std::isinf(value))
    return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

// Inside a label's quotes backslash, quote and line feed are escaped, nothing else.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\' || c == '"')
      result += '\\';
    if (c == '\n')
      result += "\\n";
    else
      result += c;
  }
  return result;
}

std::string label(std::string_view name, std::string_view value) {
  return std::string(name) + "=\"" + escaped(value) + "\"";
}

// All samples of one gauge. The format wants them together, behind one head.
class Gauge {
 public:
  Gauge(std::string_view name, std::string_view help) : name_(name) {
    head_ = "# HELP " + name_ + " " + std::string(help) + "\n# TYPE " + name_ + " gauge\n";
  }

  void add(const std::string& labels, double value) {
    samples_ += name_ + "{" + labels + "} " + number_text(value) + "\n";
  }

  std::string text() const { return samples_.empty() ? "" : head_ + samples_; }

 private:
  std::string name_;
  std::string head_;
  std::string samples_;
};

}  // namespace

Prometheus::Prometheus(const Config& config) : path_(config.get<std::string>("path")) {
  if (path_.extension() != kSuffix) {
    config.fail("path", "must end in .prom, or the collector ignores the file; got " +
                            quote_text(shown_path(path_)));
  }
}

Prometheus::~Prometheus() = default;

void Prometheus::do_run_started(const std::string& name, const std::string&) {
  run_ = name;
  trainings_.clear();
}

void Prometheus::do_epoch_completed(const FitId& fit, const EpochSummary& summary) {
  Training& training = trainings_[fit.path()];
  training.newest = summary;
  if (summary.best)
    training.best_epoch = summary.epoch;
  write();
}

void Prometheus::do_fit_completed(const FitId& fit, const FitSummary& summary) {
  const auto training = trainings_.find(fit.path());
  if (training == trainings_.end())
    return;  // it was finished before this process began: its epochs were not told to us
  training->second.completed = true;
  training->second.best_epoch = summary.best_epoch;
  write();
}

std::string Prometheus::exposition() const {
  Gauge epoch("treadle_epoch", "Epochs trained.");
  Gauge epochs("treadle_epochs_planned", "Epochs planned; early stopping may end sooner.");
  Gauge step("treadle_step", "Optimizer steps done.");
  Gauge rate("treadle_learning_rate", "Learning rate of the last step.");
  Gauge train_loss("treadle_train_loss", "Mean training loss of the last epoch.");
  Gauge val_loss("treadle_val_loss", "Validation loss after the last epoch.");
  Gauge seconds("treadle_epoch_seconds", "Wall time of the last epoch in seconds.");
  Gauge metric("treadle_metric", "Validation metrics after the last epoch.");
  Gauge logged("treadle_logged_value", "Values that the model logged: means over the last epoch.");
  Gauge best("treadle_best_epoch", "The best epoch so far.");
  Gauge completed("treadle_completed", "Whether the training has ended: 1 or 0.");

  for (const auto& [name, training] : trainings_) {
    const EpochSummary& newest = training.newest;
    const std::string labels = label("run", run_) + "," + label("fit", name);
    epoch.add(labels, static_cast<double>(newest.epoch));
    if (newest.epochs)
      epochs.add(labels, static_cast<double>(*newest.epochs));
    step.add(labels, static_cast<double>(newest.step));
    rate.add(labels, newest.learning_rate);
    train_loss.add(labels, newest.train_loss);
    if (newest.val_loss)
      val_loss.add(labels, *newest.val_loss);
    seconds.add(labels, newest.seconds);
    for (const MetricValue& value : newest.metrics)
      metric.add(labels + "," + label("metric", value.name), value.value);
    for (const MetricValue& value : newest.logged)
      logged.add(labels + "," + label("tag", value.name), value.value);
    if (training.best_epoch > 0)
      best.add(labels, static_cast<double>(training.best_epoch));
    completed.add(labels, training.completed ? 1 : 0);
  }

  std::string text;
  for (const Gauge* gauge : {&epoch, &epochs, &step, &rate, &train_loss, &val_loss, &seconds,
                             &metric, &logged, &best, &completed})
    text += gauge->text();
  return text;
}

void Prometheus::write() const {
  write_file_atomically(path_, exposition());
}

}  // namespace treadle::observers
