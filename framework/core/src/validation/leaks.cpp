#include <treadle/core/validation/leaks.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include <treadle/base/error.h>

#include "data/source_runs.h"
#include "validation/request_runs.h"

namespace treadle {
namespace {

/// Which of the positions 0 … count - 1 have a range, `step` after that of the one before, that
/// meets `other`.
RowRange meeting(const RowRange& first, std::int64_t step, std::int64_t count,
                 const RowRange& other) {
  if (first.size() <= 0)
    return {};
  // From the first that ends behind the beginning of the other, to those that begin at its end.
  const std::int64_t begin = other.begin < first.end ? 0 : (other.begin - first.end) / step + 1;
  const std::int64_t end =
      other.end <= first.begin ? 0 : (other.end - first.begin + step - 1) / step;
  return {begin, std::min(end, count)};
}

}  // namespace

/// By rows of the data.
class Leaks::Touched {
 public:
  Touched(const SplitRequest& request, const RowList& held_out)
      : request_(request), held_out_(held_out) {
    for_each_source_run(request, held_out, [&](const SampleRun& run) {
      add_ranges(run.rows.targets, run.count, run.step, targets_);
    });
    targets_ = united(std::move(targets_));
    targets_.shrink_to_fit();
  }

  std::optional<Leak> of(std::int64_t row) const {
    const SourceRows touched = request_.source_rows(row);
    for (const RowRange& range : {touched.inputs, touched.targets}) {
      const auto target = first_behind(range.begin);
      if (range.size() <= 0 || target == targets_.end() || target->begin >= range.end)
        continue;
      const std::int64_t source = std::max(range.begin, target->begin);
      return Leak{row, holder_of(source), source};
    }
    return std::nullopt;
  }

  /// Those of the samples of a run that leak, by their positions in it, ascending.
  std::vector<RowRange> leaking(const SampleRun& run) const {
    std::vector<RowRange> positions;
    for (const RowRange& range : {run.rows.inputs, run.rows.targets}) {
      const std::int64_t end = range.end + (run.count - 1) * run.step;
      for (auto target = first_behind(range.begin); target != targets_.end() && target->begin < end;
           ++target) {
        const RowRange some = meeting(range, run.step, run.count, *target);
        if (some.size() > 0)
          positions.push_back(some);
      }
    }
    return united(std::move(positions));
  }

 private:
  std::vector<RowRange>::const_iterator first_behind(std::int64_t source) const {
    return std::upper_bound(targets_.begin(), targets_.end(), source,
                            [](std::int64_t row, const RowRange& one) { return row < one.end; });
  }

  /// The held-out row in whose target a row of the data is, the first to begin of several. Looked
  /// for once, for the message.
  std::int64_t holder_of(std::int64_t source) const {
    std::int64_t holder = -1;
    std::int64_t begin = 0;
    for_each_source_run(request_, held_out_, [&](const SampleRun& run) {
      const RowRange at = meeting(run.rows.targets, run.step, run.count, {source, source + 1});
      if (at.size() <= 0)
        return;
      const std::int64_t target = run.rows.targets.begin + at.begin * run.step;
      if (holder < 0 || target < begin) {
        holder = run.first + at.begin;
        begin = target;
      }
    });
    return holder;
  }

  const SplitRequest& request_;
  const RowList held_out_;
  std::vector<RowRange> targets_;  // of the held-out rows, ascending and apart
};

/// By the times of labels.
class Leaks::Overlapping {
 public:
  Overlapping(const SplitRequest& request, const RowList& held_out)
      : times_(request.timestamps.to(at::kDouble).contiguous()),
        ends_(request.label_ends.to(at::kDouble).contiguous()),
        groups_(request.groups.defined() ? request.groups.to(at::kLong).contiguous()
                                         : at::Tensor()) {
    for (const std::int64_t row : held_out) {
      if (begin_of(row) < end_of(row))
        labels_[group_of(row)].push_back({begin_of(row), row});
    }
    // The largest end so far goes along, so that one search finds an overlap.
    for (auto& [group, labels] : labels_) {
      std::sort(labels.begin(), labels.end(),
                [](const Label& a, const Label& b) { return a.begin < b.begin; });
      for (std::size_t i = 1; i < labels.size(); ++i) {
        if (end_of(labels[i - 1].longest) > end_of(labels[i].longest))
          labels[i].longest = labels[i - 1].longest;
      }
    }
  }

  std::optional<Leak> of(std::int64_t row) const {
    const auto labels = labels_.find(group_of(row));
    if (labels == labels_.end() || begin_of(row) >= end_of(row))
      return std::nullopt;
    const auto after =
        std::lower_bound(labels->second.begin(), labels->second.end(), end_of(row),
                         [](const Label& label, double end) { return label.begin < end; });
    if (after == labels->second.begin() || end_of(std::prev(after)->longest) <= begin_of(row))
      return std::nullopt;
    return Leak{row, std::prev(after)->longest, std::nullopt};
  }

 private:
  struct Label {
    double begin;
    std::int64_t longest;  // of those that begin no later: the row whose label ends last
  };

  double begin_of(std::int64_t row) const { return times_.data_ptr<double>()[row]; }
  double end_of(std::int64_t row) const { return ends_.data_ptr<double>()[row]; }
  std::int64_t group_of(std::int64_t row) const {
    return groups_.defined() ? groups_.data_ptr<std::int64_t>()[row] : 0;
  }

  const at::Tensor times_;
  const at::Tensor ends_;
  const at::Tensor groups_;
  std::map<std::int64_t, std::vector<Label>> labels_;  // by group, in order of their beginnings
};

Leaks::Leaks(const SplitRequest& request, const RowList& held_out) : request_(request) {
  if (request.samples != nullptr)
    touched_ = std::make_unique<Touched>(request, held_out);
  if (request.label_ends.defined() && request.timestamps.defined())
    overlapping_ = std::make_unique<Overlapping>(request, held_out);
}

Leaks::~Leaks() = default;

std::optional<Leaks::Leak> Leaks::of(std::int64_t row) const {
  if (touched_) {
    if (const std::optional<Leak> leak = touched_->of(row))
      return leak;
  }
  return overlapping_ ? overlapping_->of(row) : std::nullopt;
}

std::optional<Leaks::Leak> Leaks::first_of(const RowList& rows) const {
  std::optional<Leak> leak;
  if (!touched_ && !overlapping_)
    return leak;
  for_each_source_run(request_, rows, [&](const SampleRun& run) {
    if (leak)
      return;
    const std::vector<RowRange> leaking =
        touched_ ? touched_->leaking(run) : std::vector<RowRange>();
    const std::int64_t first = run.first + (leaking.empty() ? run.count : leaking.front().begin);
    for (std::int64_t row = run.first; overlapping_ && !leak && row < first; ++row)
      leak = overlapping_->of(row);
    if (!leak && !leaking.empty())
      leak = touched_->of(first);
  });
  return leak;
}

RowList Leaks::without(const RowList& rows) const {
  if (!touched_ && !overlapping_)
    return rows;
  RowList::Builder kept;
  const auto keep = [&](const RowRange& some) {
    if (!overlapping_)
      return kept.add(some);
    for (std::int64_t row = some.begin; row < some.end; ++row) {
      if (!overlapping_->of(row))
        kept.add(row);
    }
  };
  for_each_source_run(request_, rows, [&](const SampleRun& run) {
    std::int64_t next = run.first;
    if (touched_) {
      for (const RowRange& leaking : touched_->leaking(run)) {
        keep({next, run.first + leaking.begin});
        next = run.first + leaking.end;
      }
    }
    keep({next, run.first + run.count});
  });
  return kept.done();
}

RowList purged(const SplitRequest& request, const RowList& rows, const RowList& held_out) {
  return Leaks(request, held_out).without(rows);
}

ValidationPlan purged(const SplitRequest& request, ValidationPlan plan) {
  const auto purge = [&](const Fold& fold, RowList& rows, const RowList& held_out,
                         const char* part) {
    const bool had_rows = !rows.empty();
    rows = purged(request, rows, held_out);
    if (had_rows && rows.empty()) {
      throw DataError("every " + std::string(part) + " row of " + fold.name +
                      " would tell the target of a row that is held out, so none is left; hold "
                      "fewer rows out, shorten the windows or the labels, or take more rows");
    }
  };
  const RowList none;
  const RowList& tested = plan.refit ? plan.refit->test : none;
  for (Fold& fold : plan.folds) {
    for (const RowList* test : {&std::as_const(fold.test), &tested}) {
      purge(fold, fold.validation, *test, "validation");
      purge(fold, fold.training, *test, "training");
    }
    purge(fold, fold.training, fold.validation, "training");
    for (Fold& inner : fold.inner) {
      for (const RowList* test : {&std::as_const(fold.test), &tested}) {
        purge(inner, inner.validation, *test, "validation");
        purge(inner, inner.training, *test, "training");
      }
      purge(inner, inner.training, inner.validation, "training");
    }
  }
  if (plan.refit)
    purge(*plan.refit, plan.refit->training, tested, "training");
  return plan;
}

}  // namespace treadle
