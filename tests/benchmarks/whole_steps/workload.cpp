#include "workload.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <functional>
#include <numeric>

#include "npy_bytes.h"

namespace treadle::benchmarks {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Knuth's MMIX: the same numbers with every compiler.
class Numbers {
 public:
  /// In [-1, 1).
  float next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<float>(state_ >> 40) / static_cast<float>(1U << 23) - 1;
  }
  std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>((next() + 1) / 2 * static_cast<float>(end));
  }

 private:
  std::uint64_t state_ = 1;
};

/// As Python writes it: "(60, 4)", "(60,)".
std::string tuple_of(const std::vector<std::int64_t>& sizes) {
  std::string text;
  for (const std::int64_t size : sizes)
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "(" + text + (sizes.size() == 1 ? ",)" : ")");
}

template <typename T>
class NpyFile {
 public:
  NpyFile(const fs::path& path, const std::vector<std::int64_t>& shape)
      : file_(path, std::ios::binary) {
    file_ << arrays::npy_bytes(arrays::RawNpy{arrays::descr_of<T>()}.header(tuple_of(shape)), "");
  }
  void add(const std::vector<T>& values) {
    file_.write(reinterpret_cast<const char*>(values.data()),
                static_cast<std::streamsize>(values.size() * sizeof(T)));
  }

 private:
  std::ofstream file_;
};

/// For each value of a row of this shape, which number of a pattern is in it: an image has squares
/// of 7 x 7 pixels, which pooling leaves alone; a sequence has the same in all its steps.
std::vector<std::size_t> pattern_places(const std::vector<std::int64_t>& row) {
  constexpr std::size_t kSquare = 7;
  const auto values = static_cast<std::size_t>(
      std::accumulate(row.begin(), row.end(), std::int64_t{1}, std::multiplies<>()));
  const auto width = static_cast<std::size_t>(row.back());
  std::vector<std::size_t> places(values);
  for (std::size_t i = 0; i < values; ++i) {
    const std::size_t column = i % width;
    const std::size_t line = i / width;  // over all channels
    places[i] = row.size() == 1   ? i
                : row.size() == 2 ? column
                                  : line / kSquare * width + column / kSquare;
  }
  return places;
}

Goal goal_of(const json& entry) {
  const bool is_difference = entry.contains("later_at_most");
  return {entry.at("ours"), entry.at("peers"),
          entry.at(is_difference ? "later_at_most" : "at_most"), is_difference};
}

}  // namespace

Workload::Workload(const fs::path& document) : document_(json::parse(std::ifstream(document))) {
  const json& benchmark = document_.at("extensions").at("benchmark");
  name_ = document_.at("name").get<std::string>();
  description_ = benchmark.at("is").get<std::string>();
  chapter_ = benchmark.at("measured").get<std::string>();
  for (const json& entry : benchmark.value("goals", json::array()))
    goals_.push_back(goal_of(entry));
  if (benchmark.contains("two_workers"))
    shards_for_two_ = benchmark.at("two_workers").at("shards").get<int>();
  save_every_ = benchmark.value("save_every", 0);
  rows_ = benchmark.at("rows");
  row_ = benchmark.at("row").get<std::vector<std::int64_t>>();
  classes_ = benchmark.at("classes");
}

Workload Workload::shortened(std::int64_t steps, int epochs) const {
  Workload workload = *this;
  workload.rows_ = steps * document_.at("training").at("batch_size").get<std::int64_t>() * 5 / 4;
  workload.document_["training"]["epochs"] = epochs;
  return workload;
}

Workload Workload::on_device() const {
  Workload workload = *this;
  const json here = document_.at("extensions").at("benchmark").value("on_device", json::object());
  if (here.contains("batch_size")) {
    workload.document_["training"]["batch_size"] = here.at("batch_size");
    workload.description_ += "; here with batch " + here.at("batch_size").dump();
  }
  workload.goals_.clear();
  for (const json& entry : here.value("goals", json::array()))
    workload.goals_.push_back(goal_of(entry));
  workload.shards_for_two_.reset();
  return workload;
}

std::int64_t Workload::steps_per_epoch() const {
  const std::int64_t batch_size = document_.at("training").at("batch_size");
  return (rows_ * 4 / 5 + batch_size - 1) / batch_size;
}

void Workload::write(const fs::path& folder) const {
  fs::create_directories(folder);
  std::ofstream(folder / "workflow.json") << document_.dump(2) << '\n';
  write_arrays(folder);
}

// Each row is noise, and in it, hard to see, the pattern of its class, or one pattern as strongly
// as its number says: something that all networks learn, and none in a moment.
void Workload::write_arrays(const fs::path& folder) const {
  const std::vector<std::size_t> places = pattern_places(row_);
  const auto strength = 3 / std::sqrt(static_cast<float>(places.size()));
  Numbers numbers;
  std::vector<std::vector<float>> patterns(
      static_cast<std::size_t>(std::max<std::int64_t>(classes_, 1)));
  for (std::vector<float>& pattern : patterns) {
    pattern.resize(*std::max_element(places.begin(), places.end()) + 1);
    for (float& value : pattern)
      value = numbers.next();
  }
  std::vector<std::int64_t> shape{rows_};
  shape.insert(shape.end(), row_.begin(), row_.end());
  NpyFile<float> inputs(folder / "x.npy", shape);
  std::vector<std::int64_t> classes;
  std::vector<float> targets;
  std::vector<float> input(places.size());
  for (std::int64_t row = 0; row < rows_; ++row) {
    const std::int64_t of_class = numbers.below(std::max<std::int64_t>(classes_, 1));
    const float number = classes_ > 0 ? 1 : numbers.next();
    const std::vector<float>& pattern = patterns[static_cast<std::size_t>(of_class)];
    for (std::size_t i = 0; i < input.size(); ++i)
      input[i] = numbers.next() + strength * number * pattern[places[i]];
    inputs.add(input);
    classes.push_back(of_class);
    targets.push_back(std::sin(3 * number));
  }
  if (classes_ > 0) {
    NpyFile<std::int64_t>(folder / "y.npy", {rows_}).add(classes);
  } else {
    NpyFile<float>(folder / "y.npy", {rows_, 1}).add(targets);
  }
}

}  // namespace treadle::benchmarks
