#include "curriculum.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/base/random.h>
#include <treadle/core/data/transform.h>

#include "row_lengths.h"

namespace treadle::samplers {
namespace {

double linear(double start, double progress) {
  return start + (1 - start) * progress;
}

double root(double start, double progress) {
  return std::sqrt(start * start + (1 - start * start) * progress);
}

struct Pacing {
  std::string_view name;
  double (*share)(double start, double progress);
};
constexpr std::array kPacings = {Pacing{"linear", linear}, Pacing{"root", root}};

/// `size` positions over fewer rows: cycle k is the rows in the k-th random order.
class Cycles final : public SampleOrder {
 public:
  Cycles(RowList rows, std::int64_t size, std::uint64_t seed)
      : rows_(std::move(rows)), size_(size), random_(seed) {}

 private:
  std::int64_t do_size() const override { return size_; }

  void do_fill(std::int64_t begin, std::span<std::int64_t> rows) const override {
    const auto length = static_cast<std::int64_t>(rows_.size());
    for (std::size_t filled = 0; filled < rows.size();) {
      const std::int64_t place = (begin + static_cast<std::int64_t>(filled)) % length;
      const auto cycle =
          static_cast<std::uint64_t>((begin + static_cast<std::int64_t>(filled)) / length);
      const std::size_t count =
          std::min(rows.size() - filled, static_cast<std::size_t>(length - place));
      rows_shuffled(rows_, random_.seed("cycle", {cycle}))
          ->fill(place, rows.subspan(filled, count));
      filled += count;
    }
  }

  RowList rows_;
  std::int64_t size_;
  RandomStreams random_;
};

struct Place {
  std::size_t port;
  std::int64_t column;
};

}  // namespace

Curriculum::Curriculum(const Config& config)
    : by_(config.get<std::string>("by")),
      input_(config.find<std::string>("input")),
      start_fraction_(config.get<double>("start_fraction")),
      passes_(config.get<std::int64_t>("passes")) {
  const auto pacing = config.get<std::string>("pacing");
  pacing_ = std::find_if(kPacings.begin(), kPacings.end(), [&](const Pacing& one) {
              return one.name == pacing;
            })->share;
}

double Curriculum::competence(std::int64_t pass) const {
  if (pass >= passes_)
    return 1;
  return std::min(
      1.0, pacing_(start_fraction_, static_cast<double>(pass) / static_cast<double>(passes_)));
}

std::unique_ptr<const SampleOrder> Curriculum::do_order(const SampleRequest& request) const {
  const double share = competence(request.pass);
  const auto count = static_cast<std::int64_t>(request.rows.size());
  if (share >= 1)
    return rows_shuffled(request.rows, request.seed);
  const std::vector<double> difficulty = difficulties(request);
  std::vector<std::size_t> easiest(request.rows.size());
  std::iota(easiest.begin(), easiest.end(), std::size_t{0});
  std::stable_sort(easiest.begin(), easiest.end(),
                   [&](std::size_t a, std::size_t b) { return difficulty[a] < difficulty[b]; });
  // A share of 0.1 is 3 rows of 30, however 0.1 * 30 is rounded.
  const auto kept =
      static_cast<std::size_t>(std::max(1.0, std::ceil(share * static_cast<double>(count) - 1e-9)));
  std::vector<std::int64_t> rows;
  for (std::size_t i = 0; i < std::min(kept, easiest.size()); ++i)
    rows.push_back(request.rows[easiest[i]]);
  return std::make_unique<Cycles>(std::move(rows), count, request.seed);
}

std::vector<double> Curriculum::difficulties(const SampleRequest& request) const {
  if (by_ != "length")
    return column_values(request);
  const at::Tensor lengths = row_lengths(*request.reader, input_);
  if (!lengths.defined()) {
    throw DataError("the sampler curriculum goes by length, and no input" +
                    (input_ ? " " + quote_text(*input_) : std::string()) +
                    " has rows of several lengths; " + inputs_in_words(request.reader->spec()) +
                    "; name a column with \"by\"");
  }
  const at::Tensor dense = lengths.contiguous();
  const std::int64_t* const length = dense.data_ptr<std::int64_t>();
  std::vector<double> values;
  values.reserve(request.rows.size());
  for (const std::int64_t row : request.rows)
    values.push_back(static_cast<double>(length[row]));
  return values;
}

std::vector<double> Curriculum::column_values(const SampleRequest& request) const {
  const DataSpec& spec = request.reader->spec();
  std::optional<Place> place;
  std::vector<std::string> numbers;
  for (std::size_t port = 0; port < spec.inputs.size(); ++port) {
    const std::vector<Column>& columns = spec.inputs[port].columns;
    if (!spec.inputs[port].is_table() || (input_ && port != spec.input_index(*input_)))
      continue;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (!columns[c].categories.empty())
        continue;
      numbers.push_back(columns[c].name);
      if (columns[c].name == by_ && !place)
        place = Place{port, static_cast<std::int64_t>(c)};
    }
  }
  if (!place) {
    throw DataError(
        "the sampler curriculum goes by " + quote_text(by_) + ", which is no column of numbers" +
        did_you_mean(by_, numbers) +
        (numbers.empty() ? "; there are none" : "; the columns are " + quoted_list(numbers)));
  }
  std::vector<double> values;
  values.reserve(request.rows.size());
  for_each_chunk(*request.reader, request.rows, [&](const Batch& batch) {
    const at::Tensor chunk =
        batch.inputs[place->port].select(1, place->column).to(at::kDouble).contiguous();
    const double* const begin = chunk.data_ptr<double>();
    values.insert(values.end(), begin, begin + chunk.numel());
  });
  for (double& value : values)
    value = std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
  return values;
}

}  // namespace treadle::samplers
