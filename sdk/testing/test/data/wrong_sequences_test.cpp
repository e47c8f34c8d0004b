#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/data/batch.h>
#include <treadle/core/data/matrix_rows.h>
#include <treadle/core/data/row_list.h>
#include <treadle/core/data/row_reader.h>
#include <treadle/testing/data/sequence_contract.h>

#include "component/wrong.h"

namespace treadle::testing {
namespace wrong_sequences {
namespace {

/// Samples as matrices, with what may be wrong about them.
struct Made {
  MatrixRows::Matrices table = {};
  std::vector<SourceRows> sources = {};
  /// Absent: the table's.
  std::function<void(const MatrixRows& table, std::span<const std::int64_t> samples, Batch& out)>
      gather = {};
  /// What spec() has other than the table.
  std::function<void(DataSpec& spec)> announce = {};
  bool crosses_groups = false;
  bool checks_order = true;
  bool leaves_out_the_last = false;
  /// Evaluates the samples from the last to the first.
  bool turns_evaluated = false;
  /// Gives its own samples as the steps they are made of.
  bool mistakes_steps = false;
  /// Says that samples follow one another across the border of two groups.
  bool mistakes_runs = false;
};

class Reader final : public SampleReader {
 public:
  explicit Reader(Made made)
      : spec_(made.table.spec),
        table_(std::move(made.table)),
        sources_(std::move(made.sources)),
        gather_(std::move(made.gather)),
        turns_evaluated_(made.turns_evaluated),
        mistakes_steps_(made.mistakes_steps) {
    if (made.announce)
      made.announce(spec_);
    if (made.mistakes_runs)
      runs_ = {{0, table_.rows(), sources_[0], 1}};
  }

 private:
  const DataSpec& do_spec() const override { return spec_; }
  std::int64_t do_rows() const override { return table_.rows(); }
  void do_gather(std::span<const std::int64_t> samples, Batch& out) const override {
    if (gather_) {
      gather_(table_, samples, out);
    } else {
      table_.gather(samples, out);
    }
  }
  at::Tensor do_targets(std::size_t target) const override { return table_.targets(target); }
  at::Tensor do_groups() const override { return table_.groups(); }
  at::Tensor do_timestamps() const override { return table_.timestamps(); }
  std::string do_describe_row(std::int64_t sample) const override {
    return table_.describe_row(sample);
  }
  SourceRows do_source_rows(std::int64_t sample) const override {
    return sources_[static_cast<std::size_t>(sample)];
  }
  RowList do_evaluated(const RowList& samples) const override {
    std::vector<std::int64_t> some(samples.begin(), samples.end());
    if (turns_evaluated_)
      std::reverse(some.begin(), some.end());
    return some;
  }
  const std::vector<SampleRun>& do_runs() const override { return runs_; }
  const RowReader* do_steps() const override { return mistakes_steps_ ? &table_ : nullptr; }

  DataSpec spec_;
  MatrixRows table_;
  std::vector<SourceRows> sources_;
  std::vector<SampleRun> runs_;
  std::function<void(const MatrixRows&, std::span<const std::int64_t>, Batch&)> gather_;
  bool turns_evaluated_;
  bool mistakes_steps_;
};

std::vector<RowRange> runs_of(const RowReader& rows) {
  std::vector<RowRange> runs;
  const at::Tensor groups = rows.groups();
  for (std::int64_t row = 0; row < rows.rows(); ++row) {
    if (row > 0 && (!groups.defined() ||
                    groups[row].item<std::int64_t>() == groups[row - 1].item<std::int64_t>())) {
      ++runs.back().end;
    } else {
      runs.push_back({row, row + 1});
    }
  }
  return runs;
}

/// A row, and the targets of the next one. `begin` sets what goes wrong early, `change` the rest.
class Next final : public SequenceProvider {
 public:
  using Change = std::function<void(Made& made, const RowReader& rows)>;
  Next(Change begin, Change change) : begin_(std::move(begin)), change_(std::move(change)) {}

 private:
  std::unique_ptr<SampleReader> do_samples(const RowReader& rows) const override {
    Made made;
    if (begin_)
      begin_(made, rows);
    const bool has_targets = !rows.spec().targets.empty();
    std::vector<RowRange> series = made.checks_order ? series_of(rows) : runs_of(rows);
    if (made.crosses_groups)
      series = {{0, rows.rows()}};
    std::vector<std::int64_t> now;
    std::vector<std::int64_t> next;
    for (const RowRange& one : series) {
      const bool has_next = has_targets || made.leaves_out_the_last;
      for (std::int64_t row = one.begin; row < one.end - (has_next ? 1 : 0); ++row) {
        now.push_back(row);
        next.push_back(has_targets ? row + 1 : row);
        made.sources.push_back({{row, row + 1}, {row + 1, row + 2}});
      }
    }
    if (now.empty())
      throw DataError("a sample needs 2 rows");
    Batch inputs;
    Batch targets;
    rows.gather(now, inputs);
    rows.gather(next, targets);
    made.table.spec = rows.spec();
    made.table.inputs = {inputs.inputs[0]};
    made.table.targets = targets.targets;
    made.table.weights = targets.weights;
    if (rows.groups().defined())
      made.table.groups = rows.groups().index_select(0, targets.rows);
    if (rows.timestamps().defined())
      made.table.timestamps = rows.timestamps().index_select(0, targets.rows);
    if (change_)
      change_(made, rows);
    return std::make_unique<Reader>(std::move(made));
  }

  Change begin_;
  Change change_;
};

SequenceCase next(std::string name, const Next::Change& change = {},
                  const Next::Change& begin = {}) {
  return {std::move(name), [begin, change] { return std::make_unique<Next>(begin, change); }};
}

std::vector<Wrong<SequenceCase>> all() {
  using Samples = std::span<const std::int64_t>;
  using Rows = const RowReader&;
  const auto not_predicting = [](SequenceCase one) {
    one.predicts = false;
    return one;
  };
  return {{next("EvaluatesBackwards", [](Made& made, Rows) { made.turns_evaluated = true; }),
           {"EvaluatesSomeOfTheSamplesItIsGivenInTheirOrder"}},
          {next("GivesSamplesForSteps", [](Made& made, Rows) { made.mistakes_steps = true; }),
           {"StepsAreTheRowsThatSamplesAreMadeOf"}},
          {next("RunsAcrossGroups", [](Made& made, Rows) { made.mistakes_runs = true; }),
           {"RunsAreTheSourceRowsOfAllSamples"}},
          {next("AnnouncesAnotherShape",
                [](Made& made, Rows) {
                  made.announce = [](DataSpec& spec) {
                    if (!spec.targets.empty())
                      spec.targets[0].shape = {2};
                  };
                }),
           {"SamplesLookAsTheSpecSays"}},
          {next("HasAMemory",
                [count = std::make_shared<int>(0)](Made& made, Rows) {
                  if (made.table.weights.defined())
                    made.table.weights.mul_(++*count);
                }),
           {"SamplesAreAFunctionOfTheRows"}},
          {next("GathersInItsOwnOrder",
                [](Made& made, Rows) {
                  made.gather = [](const MatrixRows& table, Samples samples, Batch& out) {
                    std::vector<std::int64_t> sorted(samples.begin(), samples.end());
                    std::sort(sorted.begin(), sorted.end());
                    table.gather(sorted, out);
                  };
                }),
           {"GathersAnySamplesInAnyOrder"}},
          {next("TakesNewMemory",
                [](Made& made, Rows) {
                  made.gather = [](const MatrixRows& table, Samples samples, Batch& out) {
                    table.gather(samples, out);
                    out.inputs[0] = out.inputs[0].clone();
                  };
                }),
           {"GathersIntoTheMemoryThatIsThere"}},
          {next("GivesEverythingAsAView",
                [](Made& made, Rows) {
                  made.gather = [](const MatrixRows& table, Samples samples, Batch& out) {
                    const bool is_all = static_cast<std::int64_t>(samples.size()) == table.rows();
                    if (is_all)
                      out.inputs.clear();
                    table.gather(samples, out);
                    if (is_all)
                      out.inputs = table.matrices().inputs;
                  };
                }),
           {"BatchesBelongToTheirReader"}},
          {next("DescribesAllAlike",
                [](Made& made, Rows) {
                  made.table.describe_row = [](std::int64_t) { return "a sample"; };
                }),
           {"WhatBelongsToASampleHasOneValuePerSample"}},
          {next("NamesNoTargetRows",
                [](Made& made, Rows) {
                  if (made.sources.size() > 3)
                    made.sources[3].targets = {};
                }),
           {"SourceRowsLieInTheData"}},
          {next("SubtractsTheMeanOfAll",
                [](Made& made, Rows) { made.table.inputs[0].sub_(made.table.inputs[0].mean()); }),
           {"WhatASampleReadsIsInItsSourceRows"}},
          {next("ReadsTheRowToPredict",
                [](Made& made, Rows rows) {
                  if (rows.spec().targets.empty())
                    return;
                  std::vector<std::int64_t> next_rows;
                  for (const SourceRows& source : made.sources)
                    next_rows.push_back(source.targets.begin);
                  Batch batch;
                  rows.gather(next_rows, batch);
                  made.table.inputs = {batch.inputs[0]};
                }),
           {"WhatASampleReadsIsInItsSourceRows"}},
          {next("CrossesGroups", {}, [](Made& made, Rows) { made.crosses_groups = true; }),
           {"ASampleLiesInOneGroup"}},
          {next("PredictsNothingFromTheLastRow", {},
                [](Made& made, Rows) { made.leaves_out_the_last = true; }),
           {"RowsWithoutTargetsGiveSamplesToPredictOn"}},
          {not_predicting(next("PredictsAndSaysItCannot")),
           {"RowsWithoutTargetsGiveSamplesToPredictOn"}},
          {next("FailsOnFewRows", {},
                [](Made&, Rows rows) {
                  if (rows.rows() < 5)
                    throw std::out_of_range("rows");
                }),
           {"SaysHowManyRowsItNeeds"}},
          {next("TakesRowsInAnyOrder", {}, [](Made& made, Rows) { made.checks_order = false; }),
           {"RefusesRowsThatAreNotInTheOrderOfTime"}},
          {next("NeedsWeights", {},
                [](Made&, Rows rows) {
                  if (!rows.spec().has_weights)
                    throw std::logic_error("no weights");
                }),
           {"TakesRowsWithoutGroupsTimesAndWeights"}},
          {next("ForOneThread",
                [](Made& made, Rows) {
                  made.gather = [mine = OneThread()](const MatrixRows& table, Samples samples,
                                                     Batch& out) {
                    if (!mine.is_mine())
                      throw std::logic_error("two threads at once");
                    table.gather(samples, out);
                  };
                }),
           {"SeveralThreadsMayGatherAtOnce"}},
          {next("WritesToTheRows",
                [](Made&, Rows rows) {
                  if (rows.timestamps().defined())
                    rows.timestamps().add_(1000);
                }),
           {"DoesNotWriteToTheRows"}}};
}

INSTANTIATE_TEST_SUITE_P(Right, SequenceContract, ::testing::Values(next("Next")), CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, SequenceContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_sequences

std::vector<Defect> sequence_defects() {
  return defects_of("SequenceContract", wrong_sequences::all());
}

}  // namespace treadle::testing
