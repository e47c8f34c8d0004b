#include <treadle/host/compare/comparability.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/time_text.h>

#include "json_member.h"

namespace treadle::compare {
namespace {

using Json = nlohmann::json;

/// Times are called the same within this share: the load of a machine changes them by as much.
constexpr double kSameTime = 0.1;

std::vector<std::size_t> finished(const std::vector<RunRecord>& runs) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].result)
      indices.push_back(i);
  }
  return indices;
}

/// "species (classification)"; empty where the result has none.
std::string target_of(const RunRecord& run) {
  if (!run.result || run.result->task.empty())
    return "";
  std::string names;
  for (const Json& target : member(run.result->data, "targets")) {
    const Json name = member(target, "name");
    names +=
        (names.empty() ? "" : ", ") + (name.is_string() ? quote_text(name.get<std::string>()) : "");
  }
  return names + " (" + run.result->task + ")";
}

std::string count_text(std::int64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

/// Values of runs by their seeds.
template <typename Value>
struct BySeed {
  struct Runs {
    std::set<Value> values;
    int count = 0;
  };

  void add(const MeasuredRun& run, const Value& value) {
    Runs& runs = seeds[run.seed];
    runs.values.insert(value);
    ++runs.count;
  }
  /// Whether each seed has several runs, which are alike in this.
  bool are_alike() const {
    return std::all_of(seeds.begin(), seeds.end(), [](const auto& one) {
      return one.second.count > 1 && one.second.values.size() == 1;
    });
  }

  std::map<std::optional<std::uint64_t>, Runs> seeds;
};

Check check_data(const std::vector<RunRecord>& runs, const std::vector<MeasuredRun>& measured,
                 const std::vector<std::size_t>& compared) {
  Check check{"data", Sameness::kUnknown, ""};
  std::map<std::string, std::string> by_hash;  // the first run with it
  BySeed<std::string> by_seed;
  for (const std::size_t run : compared) {
    if (measured[run].data.empty()) {
      check.text = "not known of " + measured[run].name;
      return check;
    }
    by_hash.emplace(measured[run].data, measured[run].name);
    by_seed.add(measured[run], measured[run].data);
  }
  if (by_hash.size() == 1) {
    const Json rows = member(runs[compared.front()].result->environment, "data_rows");
    check.sameness = Sameness::kSame;
    check.text = "the same" + (rows.is_number_integer() && rows.get<std::int64_t>() >= 0
                                   ? ", " + count_text(rows.get<std::int64_t>(), "row")
                                   : "");
  } else if (by_seed.are_alike()) {
    check.sameness = Sameness::kSame;
    check.text = "the same for runs of one seed; each seed has data of its own";
  } else {
    check.sameness = Sameness::kDiffers;
    check.text = std::to_string(by_hash.size()) +
                 " different data sets, so numbers measure the data as well as the methods: " +
                 by_hash.begin()->second + " and " + std::next(by_hash.begin())->second + " differ";
  }
  return check;
}

std::vector<std::string> rows_of(const MeasuredRun& run) {
  std::vector<std::string> rows;
  for (const MeasuredTraining& training : run.trainings)
    rows.push_back(training.rows);
  return rows;
}

Check check_rows(const std::vector<MeasuredRun>& measured,
                 const std::vector<std::size_t>& compared) {
  Check check{"rows", Sameness::kUnknown, ""};
  std::set<std::vector<std::string>> all;
  BySeed<std::vector<std::string>> by_seed;
  std::int64_t evaluated_rows = 0;
  for (const std::size_t run : compared) {
    const std::vector<std::string> rows = rows_of(measured[run]);
    if (rows.empty() || std::find(rows.begin(), rows.end(), "") != rows.end()) {
      check.text = "not known of " + measured[run].name + " which rows it was evaluated on";
      return check;
    }
    all.insert(rows);
    by_seed.add(measured[run], rows);
    for (const MeasuredTraining& training : measured[run].trainings)
      evaluated_rows += training.evaluated_rows;
  }
  const bool has_folds = all.begin()->size() > 1;
  if (all.size() == 1) {
    check.sameness = Sameness::kSame;
    check.text =
        "evaluated on the same " +
        count_text(evaluated_rows / static_cast<std::int64_t>(compared.size()), "row") +
        (has_folds ? " in " + count_text(static_cast<std::int64_t>(all.begin()->size()), "fold")
                   : "");
    return check;
  }
  if (by_seed.are_alike()) {
    check.sameness = Sameness::kSame;
    check.text = "the same for runs of one seed; each seed has a split of its own";
    return check;
  }
  check.sameness = Sameness::kDiffers;
  check.text =
      "evaluated on different rows, which makes differences of its own; give the runs one "
      "split (\"validation\": {\"seed\": 1})";
  return check;
}

Check check_loss(const std::vector<RunRecord>& runs) {
  Check check{"loss", Sameness::kUnknown, ""};
  if (have_comparable_losses(runs)) {
    check.sameness = Sameness::kSame;
    check.text = "the same function";
  } else {
    check.sameness = Sameness::kDiffers;
    check.text = "different functions or units, so losses are not compared";
  }
  return check;
}

/// The smallest and the largest total over trainings, of each method.
struct Range {
  std::string label;
  double least = INFINITY;
  double most = 0;
};

std::optional<std::vector<Range>> ranges(const MethodComparison& methods,
                                         const std::vector<MeasuredRun>& measured,
                                         std::optional<double> MeasuredTraining::*spent) {
  std::vector<Range> found;
  for (const Method& method : methods.methods) {
    Range range{method.label};
    for (const std::size_t run : method.runs) {
      double total = 0;
      for (const MeasuredTraining& training : measured[run].trainings) {
        if (!(training.*spent))
          return std::nullopt;
        total += *(training.*spent);
      }
      if (measured[run].trainings.empty())
        continue;
      range.least = std::min(range.least, total);
      range.most = std::max(range.most, total);
    }
    if (std::isfinite(range.least))
      found.push_back(range);
  }
  return found.empty() ? std::nullopt : std::optional(std::move(found));
}

template <typename Text>
std::string range_text(const Range& range, Text&& text) {
  const std::string least = text(range.least);
  const std::string most = text(range.most);
  return least == most ? least : least + " to " + most;
}

/// The same where all totals lie within `tolerance` of each other.
template <typename Text>
Check check_spent(const std::string& about, const std::optional<std::vector<Range>>& ranges,
                  double tolerance, const std::string& unit, Text&& text) {
  Check check{about, Sameness::kUnknown, ""};
  if (!ranges) {
    check.text = "not known";
    return check;
  }
  constexpr std::size_t kMostShown = 4;
  Range all = ranges->front();
  for (const Range& range : *ranges) {
    all.least = std::min(all.least, range.least);
    all.most = std::max(all.most, range.most);
  }
  if (all.most <= all.least * (1 + tolerance) || text(all.most) == text(all.least)) {
    check.sameness = Sameness::kSame;
    check.text = "the same, " + range_text(all, text);
    return check;
  }
  check.sameness = Sameness::kDiffers;
  for (std::size_t i = 0; i < std::min(ranges->size(), kMostShown); ++i) {
    check.text += (i == 0 ? "" : "; ") + (*ranges)[i].label + " " + range_text((*ranges)[i], text);
  }
  if (ranges->size() > kMostShown)
    check.text += "; and " + std::to_string(ranges->size() - kMostShown) + " more";
  check.text += ". --at " + unit + " compares at the same";
  return check;
}

/// Whether times depend on the method alone.
bool ran_alike(const std::vector<RunRecord>& runs, const std::vector<std::size_t>& compared) {
  constexpr std::array kMachine{"device", "cpu_capability", "blas", "libtorch", "workers"};
  return std::all_of(compared.begin(), compared.end(), [&](std::size_t run) {
    return std::all_of(kMachine.begin(), kMachine.end(), [&](const char* key) {
      return member(runs[run].result->environment, key) ==
             member(runs[compared.front()].result->environment, key);
    });
  });
}

std::string names(const std::vector<std::size_t>& which, const std::vector<MeasuredRun>& measured) {
  std::string text;
  for (const std::size_t run : which)
    text += (text.empty() ? "" : ", ") + measured[run].name;
  return text;
}

}  // namespace

void expect_same_targets(const std::vector<RunRecord>& runs) {
  const RunRecord* first = nullptr;
  for (const RunRecord& run : runs) {
    const std::string target = target_of(run);
    if (target.empty())
      continue;
    if (first == nullptr)
      first = &run;
    if (target_of(*first) != target) {
      throw UsageError(run.folder.string() + ": predicts " + target + ", and " +
                       first->folder.string() + " predicts " + target_of(*first) +
                       "; compare runs that predict the same");
    }
  }
}

bool have_comparable_losses(const std::vector<RunRecord>& runs) {
  std::set<Json> losses;
  for (const std::size_t run : finished(runs)) {
    losses.insert(Json::array(
        {member(runs[run].document, "loss"), runs[run].result->training.transformed_target}));
  }
  return losses.size() <= 1;
}

std::vector<Check> check_comparability(const std::vector<RunRecord>& runs,
                                       const std::vector<MeasuredRun>& measured,
                                       const MethodComparison& methods) {
  const std::vector<std::size_t> compared = finished(runs);
  std::vector<Check> checks;
  if (compared.size() > 1) {
    checks.push_back(check_data(runs, measured, compared));
    checks.push_back(check_rows(measured, compared));
    checks.push_back(check_loss(runs));
    checks.push_back(check_spent(
        "updates", ranges(methods, measured, &MeasuredTraining::updates), 0, "updates",
        [](double updates) { return std::to_string(static_cast<std::int64_t>(updates)); }));
    checks.push_back(check_spent("time", ranges(methods, measured, &MeasuredTraining::seconds),
                                 kSameTime, "time", fine_seconds_text));
    if (!ran_alike(runs, compared)) {
      checks.back().sameness = Sameness::kDiffers;
      checks.back().text +=
          "; measured on different devices, libraries or numbers of workers, so "
          "times say little";
    }
  }
  for (const Method& method : methods.methods) {
    if (!method.repeats.empty()) {
      checks.push_back({"seeds", Sameness::kDiffers,
                        names(method.repeats, measured) + ": repeats the seed of another run of " +
                            method.label + " and is left out of the statistics"});
    }
  }
  for (std::size_t run = 0; run < runs.size(); ++run) {
    if (!runs[run].result) {
      checks.push_back({"finished", Sameness::kDiffers,
                        measured[run].name + " is " + std::string(state_word(runs[run].state)) +
                            ", so it is in the table of runs alone"});
    }
  }
  return checks;
}

}  // namespace treadle::compare
