#include <treadle/core/validation/set_aside.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include <treadle/base/error.h>

namespace treadle {
namespace {

using Rows = std::vector<std::int64_t>;

constexpr const char* kStream = "hold_out";

RowList all_rows(const SplitRequest& request) {
  return RowList::range(0, request.rows);
}

std::vector<RowRange> ascending_ranges(const RowList& rows) {
  std::vector<RowRange> ranges;
  rows.for_each_range([&](const RowRange& range) { ranges.push_back(range); });
  std::sort(ranges.begin(), ranges.end(),
            [](const RowRange& a, const RowRange& b) { return a.begin < b.begin; });
  return ranges;
}

RowList last_of(const RowList& rows, std::int64_t count) {
  const auto last = static_cast<std::size_t>(count);
  return rows.part(rows.size() - last, last);
}

RowList by_row(const SplitRequest& request, std::int64_t count, const SetAside& how) {
  if (!how.shuffle)
    return last_of(all_rows(request), count);
  Rows order = random_permutation(request.rows, request.random.bits(kStream));
  order.resize(static_cast<std::size_t>(count));
  std::sort(order.begin(), order.end());
  return order;
}

// How many rows of each class: its share rounded down, and one more for those with the largest
// remainders until there are `count`.
Rows shares(const std::vector<Rows>& classes, std::int64_t rows, std::int64_t count) {
  struct Remainder {
    std::int64_t of_share;
    std::size_t class_index;
  };
  Rows taken(classes.size(), 0);
  std::vector<Remainder> remainders;
  std::int64_t left = count;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    const auto size = static_cast<std::int64_t>(classes[c].size());
    taken[c] =
        std::clamp(size * count / rows, std::int64_t{0}, std::max<std::int64_t>(size - 1, 0));
    left -= taken[c];
    if (taken[c] + 1 < size)
      remainders.push_back({size * count % rows, c});
  }
  std::stable_sort(remainders.begin(), remainders.end(),
                   [](const Remainder& a, const Remainder& b) { return a.of_share > b.of_share; });
  for (const Remainder& remainder : remainders) {
    if (left == 0)
      break;
    ++taken[remainder.class_index];
    --left;
  }
  return taken;
}

// Where no class has a row to spare, any rows.
RowList by_class(const SplitRequest& request, std::int64_t count, const SetAside& how) {
  std::vector<Rows> classes = rows_of_classes(request, how.target);
  const Rows taken = shares(classes, request.rows, count);
  Rows aside;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    if (how.shuffle) {
      request.random.bits(kStream, {c}).shuffle(classes[c]);
      std::reverse(classes[c].begin(), classes[c].end());
    }
    aside.insert(aside.end(), classes[c].end() - taken[c], classes[c].end());
  }
  if (aside.empty())
    return by_row(request, count, how);
  std::sort(aside.begin(), aside.end());
  return aside;
}

RowList by_group(const SplitRequest& request, std::int64_t count, const SetAside& how) {
  const std::vector<Rows> groups = rows_of_groups(request);
  if (groups.size() < 2)
    throw DataError("all rows are of one group, and a group cannot be in two parts");
  Rows order(groups.size());
  std::iota(order.begin(), order.end(), 0);
  if (how.shuffle)
    request.random.bits(kStream).shuffle(order);
  const auto rows_at = [&](std::int64_t group) -> const Rows& {
    return groups[static_cast<std::size_t>(group)];
  };
  Rows aside;
  for (auto group = order.rbegin(); group != order.rend(); ++group) {
    const Rows& rows = rows_at(*group);
    if (aside.size() + rows.size() <= static_cast<std::size_t>(count))
      aside.insert(aside.end(), rows.begin(), rows.end());
  }
  if (aside.empty()) {
    aside = rows_at(*std::min_element(order.rbegin(), order.rend(), [&](auto a, auto b) {
      return rows_at(a).size() < rows_at(b).size();
    }));
  }
  std::sort(aside.begin(), aside.end());
  return aside;
}

// Rows of one time stay together: the cut is the one between two times that comes closest.
RowList by_time(const SplitRequest& request, std::int64_t count, const SetAside&) {
  const RowList rows = rows_in_time(request);
  if (!request.timestamps.defined())
    return last_of(rows, count);
  const at::Tensor timestamps = request.timestamps.to(at::kDouble).contiguous();
  const auto* const time = timestamps.data_ptr<double>();
  const auto is_cut = [&](std::int64_t aside) {
    const auto at_cut = rows.size() - static_cast<std::size_t>(aside);
    return time[rows[at_cut - 1]] < time[rows[at_cut]];
  };
  for (std::int64_t away = 0; away < request.rows; ++away) {
    for (const std::int64_t aside : {count - away, count + away}) {
      if (aside > 0 && aside < request.rows && is_cut(aside))
        return last_of(rows, aside);
    }
  }
  throw DataError("all rows are of one time, and rows of one time are in one part");
}

void renumber(Fold& fold, const RowList& rows) {
  for (RowList* part : {&fold.training, &fold.validation, &fold.test})
    *part = rows.at(*part);
  for (Fold& inner : fold.inner)
    renumber(inner, rows);
}

}  // namespace

RowList rows_set_aside(const SplitRequest& request, std::int64_t count, const SetAside& how) {
  TREADLE_EXPECTS(count > 0 && count < request.rows, "some rows are set aside, and some are not");
  using Choose = RowList (*)(const SplitRequest&, std::int64_t, const SetAside&);
  constexpr Choose kChoose[] = {by_row, by_class, by_group, by_time};  // as By counts them
  return kChoose[static_cast<std::size_t>(how.by)](request, count, how);
}

ValidationPlan plan_with_test_rows(
    const SplitRequest& request, double fraction, const SetAside& how,
    const std::function<ValidationPlan(const SplitRequest& rest)>& split) {
  constexpr std::int64_t kFewestLeft = 2;
  if (fraction == 0)
    return split(request);
  TREADLE_EXPECTS(fraction > 0 && fraction < 1, "a fraction is between 0 and 1");
  if (request.rows <= kFewestLeft) {
    throw DataError("the data has " + std::to_string(request.rows) +
                    " rows; training, validation and test need at least one each");
  }
  const auto count = std::clamp<std::int64_t>(
      std::llround(fraction * static_cast<double>(request.rows)), 1, request.rows - kFewestLeft);
  SplitRequest for_test = request;
  for_test.random = request.random.part("test", 0);  // or they would be the rows held out next
  RowList test = rows_set_aside(for_test, count, how);
  const RowList rest = all_rows_but(request.rows, test);
  const std::string aside = std::to_string(test.size()) + " of the " +
                            std::to_string(request.rows) + " rows are set aside for the test";
  if (static_cast<std::int64_t>(rest.size()) < kFewestLeft) {
    throw DataError(aside + ", and training and validation need at least one each");
  }
  ValidationPlan plan;
  try {
    plan = split(request.part(rest));
  } catch (const DataError& error) {
    throw DataError(std::string(error.what()) + "; " + aside);
  }
  renumber(plan, rest);
  if (!plan.refit && (plan.folds.size() > 1 || !plan.folds.front().test.empty())) {
    throw DataError(aside + ", and there is no model of the run to test on them; leave out " +
                    "\"test_fraction\", or train one on all other rows (\"refit\")");
  }
  (plan.refit ? *plan.refit : plan.folds.front()).test = std::move(test);
  return plan;
}

void renumber(ValidationPlan& plan, const RowList& rows) {
  for (Fold& fold : plan.folds)
    renumber(fold, rows);
  if (plan.refit)
    renumber(*plan.refit, rows);
}

Fold refit_on(RowList training) {
  Fold refit;
  refit.name = "final";
  refit.training = std::move(training);
  return refit;
}

RowList rows_in_time(const SplitRequest& request) {
  if (!request.timestamps.defined())
    return all_rows(request);
  const at::Tensor timestamps = request.timestamps.to(at::kDouble).contiguous();
  const auto* const time = timestamps.data_ptr<double>();
  if (std::is_sorted(time, time + request.rows))
    return all_rows(request);
  Rows order = all_rows(request).numbers();
  std::stable_sort(order.begin(), order.end(),
                   [time](std::int64_t a, std::int64_t b) { return time[a] < time[b]; });
  return order;
}

RowList all_rows_but(std::int64_t rows, const RowList& without) {
  RowList::Builder rest;
  std::int64_t next = 0;
  for (const RowRange& range : ascending_ranges(without)) {
    rest.add(RowRange{next, range.begin});
    next = std::max(next, range.end);
  }
  rest.add(RowRange{next, rows});
  return rest.done();
}

RowList rows_of_both(const RowList& a, const RowList& b) {
  RowList::Builder both;
  both.add(a);
  both.add(b);
  const RowList in_any_order = both.done();
  for (const RowRange& range : ascending_ranges(in_any_order))
    both.add(range);
  return both.done();
}

std::vector<Rows> rows_of_classes(const SplitRequest& request, std::size_t target) {
  const at::Tensor& values = request.target_values.at(target);
  TREADLE_EXPECTS(values.defined() && values.scalar_type() == at::kLong && values.dim() == 1 &&
                      values.size(0) == request.rows,
                  "targets of classes are int64 [rows]");
  const at::Tensor targets = values.contiguous();
  const auto* const classes = targets.data_ptr<std::int64_t>();
  std::vector<Rows> rows(static_cast<std::size_t>(request.targets[target].class_count()));
  for (std::int64_t row = 0; row < request.rows; ++row)
    rows.at(static_cast<std::size_t>(classes[row])).push_back(row);
  return rows;
}

std::vector<Rows> rows_of_groups(const SplitRequest& request) {
  TREADLE_EXPECTS(request.groups.defined(), "these rows have groups");
  const at::Tensor groups = request.groups.to(at::kLong).contiguous();
  const auto* const group_of = groups.data_ptr<std::int64_t>();
  std::map<std::int64_t, std::size_t> numbers;
  std::vector<Rows> rows;
  for (std::int64_t row = 0; row < request.rows; ++row) {
    const auto [number, is_new] = numbers.emplace(group_of[row], rows.size());
    if (is_new)
      rows.emplace_back();
    rows[number->second].push_back(row);
  }
  return rows;
}

}  // namespace treadle
