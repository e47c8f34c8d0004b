#include <treadle/core/leaks.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>

#include <treadle/base/error.h>

namespace treadle {
namespace {

using Rows = std::vector<std::int64_t>;

constexpr std::int64_t kNone = -1;

}  // namespace

/// By rows of the data.
class Leaks::Touched {
 public:
  Touched(const SplitRequest& request, Rows held_out) : request_(request) {
    const auto targets = [&](std::int64_t row) { return request.source_rows(row).targets; };
    std::erase_if(held_out, [&](std::int64_t row) { return targets(row).size() == 0; });
    std::sort(held_out.begin(), held_out.end(),
              [&](std::int64_t a, std::int64_t b) { return targets(a).begin < targets(b).begin; });
    // In this order a row of the data belongs to the first whose target reaches it.
    for (const std::int64_t row : held_out) {
      const RowRange range = targets(row);
      if (static_cast<std::int64_t>(holder_.size()) < range.end)
        holder_.resize(static_cast<std::size_t>(range.end), kNone);
      for (std::int64_t source = std::max(range.begin, filled_); source < range.end; ++source)
        holder_[static_cast<std::size_t>(source)] = row;
      filled_ = std::max(filled_, range.end);
    }
    next_.resize(holder_.size());
    std::int64_t next = std::numeric_limits<std::int64_t>::max();
    for (std::size_t source = holder_.size(); source > 0; --source) {
      if (holder_[source - 1] != kNone)
        next = static_cast<std::int64_t>(source) - 1;
      next_[source - 1] = next;
    }
  }

  std::optional<Leak> of(std::int64_t row) const {
    const SourceRows touched = request_.source_rows(row);
    for (const RowRange& range : {touched.inputs, touched.targets}) {
      if (range.begin >= static_cast<std::int64_t>(next_.size()) || range.size() == 0)
        continue;
      const std::int64_t source = next_[static_cast<std::size_t>(range.begin)];
      if (source < range.end)
        return Leak{row, holder_[static_cast<std::size_t>(source)], source};
    }
    return std::nullopt;
  }

 private:
  const SplitRequest& request_;
  std::int64_t filled_ = 0;
  Rows holder_;  // by row of the data: the held-out row in whose target it is
  Rows next_;    // by row of the data: the next one, from it on, that has a holder
};

/// By the times of labels.
class Leaks::Overlapping {
 public:
  Overlapping(const SplitRequest& request, const Rows& held_out)
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

Leaks::Leaks(const SplitRequest& request, const Rows& held_out) {
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

Rows purged(const SplitRequest& request, Rows rows, const Rows& held_out) {
  const Leaks leaks(request, held_out);
  std::erase_if(rows, [&](std::int64_t row) { return leaks.of(row).has_value(); });
  return rows;
}

ValidationPlan purged(const SplitRequest& request, ValidationPlan plan) {
  const auto purge = [&](const Fold& fold, Rows& rows, const Rows& held_out, const char* part) {
    const bool had_rows = !rows.empty();
    rows = purged(request, std::move(rows), held_out);
    if (had_rows && rows.empty()) {
      throw DataError("every " + std::string(part) + " row of " + fold.name +
                      " would tell the target of a row that is held out, so none is left; hold "
                      "fewer rows out, shorten the windows or the labels, or take more rows");
    }
  };
  const Rows none;
  const Rows& tested = plan.refit ? plan.refit->test : none;
  for (Fold& fold : plan.folds) {
    for (const Rows* test : {&std::as_const(fold.test), &tested}) {
      purge(fold, fold.validation, *test, "validation");
      purge(fold, fold.training, *test, "training");
    }
    purge(fold, fold.training, fold.validation, "training");
    for (Fold& inner : fold.inner) {
      for (const Rows* test : {&std::as_const(fold.test), &tested}) {
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
