#include <treadle/core/history/trend_recorder.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <numeric>

#include <ATen/ops/stack.h>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>
#include <treadle/base/quoted_text.h>

namespace treadle {
namespace {

using std::chrono::nanoseconds;

template <typename... Values>
std::string print(const char* format, Values... values) {
  char text[64];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

/// The longest, and whether there is any.
std::size_t epochs_of(const TrendRecorder& recorder, const TrendRecorder::Tags& tags) {
  std::size_t epochs = 0;
  for (const std::string& tag : tags)
    epochs = std::max(epochs, recorder.trend(tag).size());
  if (epochs == 0)
    throw UsageError("there is no trend to write: nothing was flushed under these tags");
  return epochs;
}

std::string number_text(double value) {
  const double size = std::abs(value);
  if (size == 0)
    return "0";
  return size < 0.001 ? print("%.2e", value)
         : size < 100 ? print("%.4f", value)
                      : print("%.2f", value);
}

std::string rfc3339(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace

TrendRecorder::TrendRecorder()
    : TrendRecorder([] {
        return std::chrono::duration_cast<nanoseconds>(
            std::chrono::steady_clock::now().time_since_epoch());
      }) {}

TrendRecorder::TrendRecorder(Clock clock) : clock_(std::move(clock)) {}

void TrendRecorder::add_group(std::string name, Tags tags) {
  groups_[std::move(name)] = std::move(tags);
}

void TrendRecorder::set_direction(std::string_view tag, Direction direction) {
  series(tag).direction = direction;
}

void TrendRecorder::start() {
  if (!start_)
    start_ = clock_();
}

TrendRecorder::Series& TrendRecorder::series(std::string_view tag) {
  const auto found = series_.find(tag);
  return found != series_.end() ? found->second : series_[std::string(tag)];
}

void TrendRecorder::collect(std::string_view tag, const at::Tensor& value,
                            std::optional<Reduction> reduction) {
  at::Tensor number = reduced(tag, value, reduction);
  start();
  Series& its = series(tag);
  its.pending.emplace_back(its.batch.size(), std::move(number));
  its.batch.push_back(std::nan(""));
}

void TrendRecorder::record(std::string_view tag, std::span<const double> values) {
  start();
  std::vector<double>& batch = series(tag).batch;
  batch.insert(batch.end(), values.begin(), values.end());
}

/// Fetches what is on a device, all of it at once.
void TrendRecorder::read(std::span<Series* const> all) {
  std::map<std::string, std::vector<std::pair<double*, at::Tensor>>> by_device;
  for (Series* series : all) {
    for (auto& [index, value] : series->pending)
      by_device[value.device().str()].emplace_back(&series->batch[index], std::move(value));
    series->pending.clear();
  }
  for (const auto& [device, waiting] : by_device) {
    std::vector<at::Tensor> values;
    for (const auto& [place, value] : waiting)
      values.push_back(value);
    const at::Tensor numbers = at::stack(values).cpu();
    for (std::size_t i = 0; i < waiting.size(); ++i)
      *waiting[i].first = numbers.data_ptr<double>()[i];
  }
}

const std::vector<double>& TrendRecorder::collected(std::string_view tag) {
  static const std::vector<double> none;
  const auto found = series_.find(tag);
  if (found == series_.end())
    return none;
  Series* const its = &found->second;
  read({&its, 1});
  return its->batch;
}

TrendRecorder::Means TrendRecorder::flush(const Tags& tags) {
  std::vector<Series*> all;
  Means means;
  for (const std::string& tag : expanded(tags)) {
    const auto found = series_.find(tag);
    if (found == series_.end() || found->second.batch.empty())
      continue;
    if (means.emplace(tag, 0).second)
      all.push_back(&found->second);
  }
  if (means.empty())
    return means;
  read(all);
  for (auto& [tag, mean] : means) {
    Series& its = series(tag);
    mean = std::accumulate(its.batch.begin(), its.batch.end(), 0.0) /
           static_cast<double>(its.batch.size());
    its.epochs.push_back(mean);
    its.batch.clear();
  }
  flushes_.push_back(elapsed());
  if (heard_)
    heard_(means);
  return means;
}

nanoseconds TrendRecorder::elapsed() const {
  return start_ ? clock_() - *start_ : nanoseconds(0);
}

nanoseconds TrendRecorder::last_flush_duration() const {
  return flushes_.size() < 2 ? nanoseconds(0) : flushes_.back() - flushes_[flushes_.size() - 2];
}

nanoseconds TrendRecorder::eta(std::int64_t total) const {
  if (flushes_.empty())
    return nanoseconds(0);
  return elapsed() / flush_count() * std::max<std::int64_t>(0, total - flush_count());
}

Trend TrendRecorder::trend(std::string_view tag) const {
  const auto found = series_.find(tag);
  return found == series_.end() ? Trend() : Trend(found->second.epochs, found->second.direction);
}

TrendGroup TrendRecorder::trends(const Tags& tags) const {
  std::vector<Trend> trends;
  for (const std::string& tag : expanded(tags))
    trends.push_back(trend(tag));
  return TrendGroup(std::move(trends));
}

void TrendRecorder::reset(const Tags& tags) {
  for (const std::string& tag : expanded(tags)) {
    const auto found = series_.find(tag);
    if (found != series_.end())
      found->second.epochs.clear();
  }
}

TrendRecorder::Tags TrendRecorder::tags() const {
  Tags names;
  for (const auto& [tag, its] : series_) {
    if (!its.batch.empty() || !its.epochs.empty())
      names.push_back(tag);
  }
  return names;
}

TrendRecorder::Tags TrendRecorder::expanded(const Tags& tags) const {
  if (tags.empty())
    return this->tags();
  Tags all;
  for (const std::string& tag : tags) {
    const auto group = groups_.find(tag);
    if (group == groups_.end()) {
      all.push_back(tag);
    } else {
      all.insert(all.end(), group->second.begin(), group->second.end());
    }
  }
  return all;
}

std::string log_text(const TrendRecorder& recorder, std::int64_t total,
                     std::chrono::system_clock::time_point now, const TrendRecorder::Tags& tags) {
  const TrendRecorder::Tags names = recorder.expanded(tags);
  const std::size_t epochs = epochs_of(recorder, names);
  const std::vector<nanoseconds>& times = recorder.flush_times();
  std::string text = "# " + rfc3339(now) + "\n";
  for (std::size_t i = 0; i < epochs; ++i) {
    text += "epoch " + std::to_string(i + 1) + "/" + std::to_string(total);
    for (const std::string& name : names) {
      const Trend trend = recorder.trend(name);
      if (i < trend.size())
        text += "  " + name + " " + number_text(trend.values()[i]);
    }
    if (i < times.size()) {
      const nanoseconds took = times[i] - (i == 0 ? nanoseconds(0) : times[i - 1]);
      const auto done = static_cast<std::int64_t>(i + 1);
      const nanoseconds left = times[i] / done * std::max<std::int64_t>(0, total - done);
      text += "  " + format_duration(took) + "  left " + format_duration(left);
    }
    text += "\n";
  }
  return text;
}

void write_log(const std::filesystem::path& path, const TrendRecorder& recorder, std::int64_t total,
               const TrendRecorder::Tags& tags) {
  write_file_atomically(path, log_text(recorder, total, std::chrono::system_clock::now(), tags));
}

std::string csv_text(const TrendRecorder& recorder, const TrendRecorder::Tags& tags) {
  const TrendRecorder::Tags names = recorder.expanded(tags);
  const std::size_t epochs = epochs_of(recorder, names);
  std::string text = "epoch";
  for (const std::string& name : names)
    text += "," + csv_field(name);
  text += "\n";
  for (std::size_t i = 0; i < epochs; ++i) {
    text += std::to_string(i + 1);
    for (const std::string& name : names) {
      const Trend trend = recorder.trend(name);
      text += ",";
      if (i < trend.size())
        text += print("%.8g", trend.values()[i]);
    }
    text += "\n";
  }
  return text;
}

void write_csv(const std::filesystem::path& path, const TrendRecorder& recorder,
               const TrendRecorder::Tags& tags) {
  write_file_atomically(path, csv_text(recorder, tags));
}

std::string format_duration(nanoseconds time) {
  using namespace std::chrono;
  if (time < seconds(1))
    return print("%lldms", static_cast<long long>(duration_cast<milliseconds>(time).count()));
  if (time < minutes(1))
    return print("%.1fs", duration<double>(time).count());
  const auto whole = static_cast<long long>(duration_cast<seconds>(time).count());
  return print("%lldm%02llds", whole / 60, whole % 60);
}

}  // namespace treadle
