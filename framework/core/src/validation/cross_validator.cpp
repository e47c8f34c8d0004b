#include <treadle/core/validation/cross_validator.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <ATen/ops/tensor.h>

#include <treadle/base/error.h>
#include <treadle/core/components/fit_id.h>
#include <treadle/core/components/plugin_call.h>
#include <treadle/core/validation/leaks.h>
#include <treadle/core/validation/set_aside.h>

namespace treadle {
namespace {

/// A mark for each row, a bit.
class Marks {
 public:
  explicit Marks(std::int64_t rows) : words_(static_cast<std::size_t>(rows + kBits - 1) / kBits) {}

  void add(const RowRange& rows) {
    for_each_word(rows, [&](std::size_t word, std::uint64_t mask) {
      words_[word] |= mask;
      return false;
    });
  }
  /// Adds all marks of another one, of as many rows.
  void add(const Marks& others) {
    for (std::size_t word = 0; word < words_.size(); ++word)
      words_[word] |= others.words_[word];
  }
  void clear() { std::fill(words_.begin(), words_.end(), 0); }
  /// The first of the rows that has one; their end, where none has.
  std::int64_t first_in(const RowRange& rows) const {
    std::int64_t first = rows.end;
    for_each_word(rows, [&](std::size_t word, std::uint64_t mask) {
      const std::uint64_t marked = words_[word] & mask;
      if (marked != 0)
        first = static_cast<std::int64_t>(word) * kBits + std::countr_zero(marked);
      return marked != 0;
    });
    return first;
  }

 private:
  static constexpr std::int64_t kBits = 64;

  /// Calls `use(word, the bits of it)` until it returns true.
  template <typename Use>
  static void for_each_word(RowRange rows, Use&& use) {
    while (rows.begin < rows.end) {
      const std::int64_t bit = rows.begin % kBits;
      const std::int64_t count = std::min(kBits - bit, rows.end - rows.begin);
      const std::uint64_t mask = (~std::uint64_t{0} >> (kBits - count)) << bit;
      if (use(static_cast<std::size_t>(rows.begin / kBits), mask))
        return;
      rows.begin += count;
    }
  }

  std::vector<std::uint64_t> words_;
};

/// Counts the uses of rows.
class Uses {
 public:
  explicit Uses(std::int64_t rows) : rows_(rows), used_(rows), tested_(rows) {}

  /// What is wrong with these rows of `part`; empty when nothing is.
  std::string defect_of(const std::string& part, const RowList& rows) {
    std::string defect;
    rows.for_each_range([&](const RowRange& range) {
      if (defect.empty())
        defect = defect_of(part, range);
    });
    return defect;
  }
  /// All that was counted so far is for the test.
  void mark_as_test() {
    tested_.add(used_);
    used_.clear();
  }

 private:
  std::string defect_of(const std::string& part, const RowRange& range) {
    const RowRange known{range.begin, std::min(range.end, rows_)};
    const std::int64_t outside = range.begin < 0 ? range.begin : std::max(range.begin, rows_);
    const std::int64_t tested = range.begin < 0 ? known.end : tested_.first_in(known);
    const std::int64_t used = range.begin < 0 ? known.end : used_.first_in(known);
    if (tested < known.end && tested < used)
      return part + " uses row " + std::to_string(tested) + ", which is set aside for the test";
    if (used < known.end)
      return part + " uses row " + std::to_string(used) + " twice";
    if (outside < range.end)
      return part + " has row " + std::to_string(outside) + " of " + std::to_string(rows_);
    used_.add(range);
    return "";
  }

  std::int64_t rows_;
  Marks used_;
  Marks tested_;
};

/// What is wrong with the rows of a fold, to go on after "it returned a plan in which"; empty when
/// nothing is. `uses` has the rows that it must not use.
std::string defect_of_rows(const Fold& fold, Uses& uses) {
  for (const RowList* part : {&fold.training, &fold.validation, &fold.test}) {
    if (std::string defect = uses.defect_of(fold.name, *part); !defect.empty())
      return defect;
  }
  return "";
}

std::string defect_of_name(const std::string& name) {
  return FitId::is_part(name) ? ""
                              : "a fold is called \"" + name +
                                    "\", which cannot name a fit: " + std::string(FitId::kPartRule);
}

std::string defect_of_inner(const Fold& fold, std::int64_t rows) {
  if (fold.test.empty())
    return fold.name + " has inner folds and no test rows";
  if (!fold.validation.empty())
    return fold.name + " has inner folds and validation rows";
  Uses outside(rows);
  outside.defect_of("", all_rows_but(rows, fold.training));
  for (const Fold& inner : fold.inner) {
    const std::string name = fold.name + "/" + inner.name;
    if (std::string defect = defect_of_name(inner.name); !defect.empty())
      return defect;
    if (inner.training.empty() || inner.validation.empty() || !inner.test.empty() ||
        !inner.inner.empty() || inner.starts_from) {
      return name + " has other parts than training and validation rows";
    }
    Uses uses = outside;
    uses.mark_as_test();
    if (!defect_of_rows(inner, uses).empty())
      return name + " uses a row twice, or one that is no training row of " + fold.name;
  }
  return "";
}

std::string defect_of(const Fold& fold, std::size_t index, std::int64_t rows, Uses uses) {
  if (std::string defect = defect_of_name(fold.name); !defect.empty())
    return defect;
  if (fold.training.empty())
    return fold.name + " has no training rows";
  if (fold.validation.empty() && fold.inner.empty())
    return fold.name + " has no validation rows";
  if (fold.starts_from && *fold.starts_from >= index)
    return fold.name + " starts from a fold that is not before it";
  if (std::string defect = defect_of_rows(fold, uses); !defect.empty())
    return defect;
  return fold.inner.empty() ? "" : defect_of_inner(fold, rows);
}

std::string defect_of_refit(const Fold& refit, std::size_t folds, Uses& uses) {
  if (refit.training.empty())
    return "the refit has no training rows";
  if (!refit.validation.empty() || !refit.inner.empty())
    return "the refit has validation rows or inner folds";
  if (refit.starts_from && *refit.starts_from >= folds)
    return "the refit starts from a fold that is not there";
  // Its test rows measure the run's model, so no fold may have chosen anything by them. Its
  // training rows are those of the folds again.
  if (std::string defect = uses.defect_of("the test", refit.test); !defect.empty())
    return defect;
  uses.mark_as_test();
  Uses own = uses;
  return own.defect_of("the refit", refit.training);
}

/// Fits lie in folders of these names.
std::string doubled_name(const std::vector<Fold>& folds, bool has_refit) {
  std::set<std::string> names;
  if (has_refit)
    names.insert("final");
  for (const Fold& fold : folds) {
    if (!names.insert(fold.name).second)
      return "two fits are called \"" + fold.name + "\"";
    if (!fold.inner.empty()) {
      if (std::string doubled = doubled_name(fold.inner, true); !doubled.empty())
        return doubled;
    }
  }
  return "";
}

std::string defect_of(const ValidationPlan& plan, std::int64_t rows) {
  Uses uses(rows);
  if (plan.refit) {
    if (std::string defect = defect_of_refit(*plan.refit, plan.folds.size(), uses); !defect.empty())
      return defect;
  }
  for (std::size_t i = 0; i < plan.folds.size(); ++i) {
    if (std::string defect = defect_of(plan.folds[i], i, rows, uses); !defect.empty())
      return defect;
    if (plan.folds[i].test.empty() != plan.folds.front().test.empty())
      return "some folds are tested and others are not";
  }
  return doubled_name(plan.folds, plan.refit.has_value());
}

/// "row 8712 of the data (line 8714 of ETTh1.csv, 2017-06-28 00:00)".
std::string source_in_words(const SplitRequest& request, std::int64_t row) {
  std::string text = "row " + std::to_string(row) + " of the data";
  if (request.data == nullptr)
    return text;
  std::string more = request.data->describe_row(row);
  if (more == "row " + std::to_string(row))
    more.clear();
  if (const std::string time = request.data->describe_time(row); !time.empty())
    more += (more.empty() ? "" : ", ") + time;
  return more.empty() ? text : text + " (" + more + ")";
}

/// "sample 3 (rows 1-96, target rows 97-120)", "row 17 (line 18 of a.csv)".
std::string row_in_words(const SplitRequest& request, std::int64_t row) {
  if (request.samples != nullptr)
    return request.describe(row);
  return source_in_words(request, request.source_rows(row).inputs.begin);
}

/// Throws DataError when one of the rows would tell a held-out target.
void expect_apart(const SplitRequest& request, const std::string& fold, const char* part,
                  const RowList& rows, const char* other, const RowList& held_out) {
  if (rows.empty() || held_out.empty())
    return;
  const std::optional<Leaks::Leak> leak = Leaks(request, held_out).first_of(rows);
  if (!leak)
    return;
  const std::int64_t row = leak->row;
  const std::string known = row_in_words(request, leak->held_out);
  if (leak->source) {
    throw DataError("in " + fold + ", " + source_in_words(request, *leak->source) + " is in " +
                    part + " " + row_in_words(request, row) + " and in the target of " + other +
                    " " + known +
                    ": the model would be told the answer; split by time, {\"use\": "
                    "\"time_series\"} or {\"use\": \"hold_out\", \"strategy\": "
                    "\"chronological\"}");
  }
  throw DataError("in " + fold + ", the label of " + part + " " + row_in_words(request, row) +
                  " is made of times that the label of " + other + " " + known +
                  " is made of as well: the model would be told a part of the answer; purge "
                  "such rows, {\"use\": \"purged\"} or another split by time");
}

void expect_no_leak(const SplitRequest& request, const ValidationPlan& plan) {
  const auto expect_fold = [&](const std::string& name, const Fold& fold, const RowList& test) {
    expect_apart(request, name, "training", fold.training, "validation", fold.validation);
    expect_apart(request, name, "training", fold.training, "test", test);
    expect_apart(request, name, "validation", fold.validation, "test", test);
  };
  const RowList tested = plan.refit ? plan.refit->test : RowList();
  for (const Fold& fold : plan.folds) {
    expect_fold(fold.name, fold, fold.test);
    expect_fold(fold.name, fold, tested);
    for (const Fold& inner : fold.inner) {
      expect_fold(fold.name + "/" + inner.name, inner, fold.test);
      expect_fold(fold.name + "/" + inner.name, inner, tested);
    }
  }
  if (plan.refit)
    expect_apart(request, "the refit", "training", plan.refit->training, "test", tested);
}

/// Leaves of the parts that judge a model those samples that are worth it.
void thin(Fold& fold, const SplitRequest& request) {
  for (RowList* const part : {&fold.validation, &fold.test}) {
    const RowList numbers = request.numbers.empty() ? *part : request.numbers.at(*part);
    const RowList kept = request.samples->evaluated(numbers);
    if (request.numbers.empty() || kept == numbers) {
      *part = request.numbers.empty() ? kept : *part;
      continue;
    }
    RowList::Builder rows;
    auto next = kept.begin();
    for (std::size_t i = 0; i < numbers.size() && next != kept.end(); ++i) {
      if (numbers[i] != *next)
        continue;
      rows.add((*part)[i]);
      ++next;
    }
    *part = rows.done();
  }
  for (Fold& inner : fold.inner)
    thin(inner, request);
}

void thin(ValidationPlan& plan, const SplitRequest& request) {
  for (Fold& fold : plan.folds)
    thin(fold, request);
  if (plan.refit)
    thin(*plan.refit, request);
}

}  // namespace

SplitRequest SplitRequest::part(const RowList& some) const {
  SplitRequest part = *this;
  const auto count = static_cast<std::int64_t>(some.size());
  const bool is_range = count > 0 && some == RowList::range(some.front(), some.front() + count);
  const at::Tensor index = is_range ? at::Tensor() : at::tensor(some.numbers(), at::kLong);
  const auto select = [&](at::Tensor& tensor) {
    if (tensor.defined())
      tensor = is_range ? tensor.narrow(0, some.front(), count) : tensor.index_select(0, index);
  };
  part.rows = count;
  for (at::Tensor& values : part.target_values)
    select(values);
  select(part.groups);
  select(part.timestamps);
  select(part.label_ends);
  part.numbers = numbers.empty() ? some : numbers.at(some);
  return part;
}

SourceRows SplitRequest::source_rows(std::int64_t row) const {
  const std::int64_t number = numbers.empty() ? row : numbers[static_cast<std::size_t>(row)];
  if (samples != nullptr)
    return samples->source_rows(number);
  return {{number, number + 1}, {number, number + 1}};
}

std::string SplitRequest::describe(std::int64_t row) const {
  const std::int64_t number = numbers.empty() ? row : numbers[static_cast<std::size_t>(row)];
  const RowReader* const reader = samples != nullptr ? samples : data;
  return reader != nullptr ? reader->describe_row(number) : "row " + std::to_string(number);
}

ValidationPlan CrossValidator::plan(const SplitRequest& request) const {
  if (request.rows < 2) {
    throw DataError("the data has " + std::to_string(request.rows) +
                    " row(s); training and validation need at least one each");
  }
  ValidationPlan plan = call_plugin(*this, "plan", [&] { return do_plan(request); });
  if (plan.folds.empty())
    refuse_result(*this, "plan", "returned a plan without folds");
  if (const std::string defect = defect_of(plan, request.rows); !defect.empty())
    refuse_result(*this, "plan", "returned a plan in which " + defect);
  if (request.samples != nullptr)
    thin(plan, request);
  expect_no_leak(request, plan);
  return plan;
}

std::int64_t CrossValidator::first_rows_of_stream() const {
  const std::int64_t rows =
      call_plugin(*this, "first_rows_of_stream", [&] { return do_first_rows_of_stream(); });
  if (rows < 1)
    refuse_result(*this, "first_rows_of_stream", "returned " + std::to_string(rows));
  return rows;
}

std::int64_t CrossValidator::do_first_rows_of_stream() const {
  throw DataError(
      "the data can only be read in order, and this validation needs all rows at once; use "
      "{\"use\": \"hold_out\", \"rows\": 1000}, which keeps the first 1000 rows");
}

}  // namespace treadle
