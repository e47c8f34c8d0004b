#include "data/rounded_columns.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <treadle/base/json_words.h>
#include <treadle/core/data/data_spec.h>
#include <treadle/core/data/port_spec.h>

namespace treadle::internal {
namespace {

constexpr std::int64_t kMostRows = 4096;

template <typename T>
std::size_t count_different(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return static_cast<std::size_t>(std::unique(values.begin(), values.end()) - values.begin());
}

/// Whether rounding may matter at all: not where the steps of float32 are small beside the range.
bool is_coarse(const std::vector<double>& values) {
  if (values.empty())
    return false;
  constexpr double kStep = 0x1p-24;  // half the distance of 1 to the next number
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const double largest = std::max(std::abs(*least), std::abs(*most));
  return *most > *least &&
         largest * kStep * static_cast<double>(values.size()) > (*most - *least) / 16;
}

/// `what` stands at the beginning; `remedy` brings the values nearer to 0.
void look_at(const at::Tensor& column, const std::string& what, const char* remedy,
             std::vector<std::string>& notes) {
  std::vector<double> values;
  const at::Tensor flat = column.reshape({-1}).contiguous();
  const auto* const value = flat.data_ptr<double>();
  std::copy_if(value, value + flat.numel(), std::back_inserter(values),
               [](double one) { return std::isfinite(one); });
  if (!is_coarse(values))
    return;
  const std::size_t different = count_different(values);
  const std::size_t kept = count_different(std::vector<float>(values.begin(), values.end()));
  if (10 * kept >= 9 * different)
    return;
  notes.push_back(what + " has " + std::to_string(different) + " different values in " +
                  std::to_string(values.size()) + ", of which float32 keeps " +
                  std::to_string(kept) + "; add " + remedy +
                  " to \"transforms\", or set \"precision\": \"float64\"");
}

}  // namespace

std::vector<std::string> notes_on_rounding(const RowReader& transformed, const RowList& rows) {
  std::vector<std::string> notes;
  const auto all = static_cast<std::int64_t>(rows.size());
  const std::int64_t count = std::min(all, kMostRows);
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < count; ++i)
    places.push_back(i * all / count);
  std::vector<std::int64_t> some;
  for (const std::int64_t row : rows.at(RowList(std::move(places))))
    some.push_back(row);
  if (some.empty())
    return notes;
  Batch batch;
  transformed.gather(some, batch);
  const DataSpec& spec = transformed.spec();
  for (std::size_t port = 0; port < spec.inputs.size(); ++port) {
    const PortSpec& input = spec.inputs[port];
    if (batch.inputs[port].scalar_type() != at::kDouble)
      continue;
    for (std::size_t i = 0; i < input.columns.size(); ++i) {
      look_at(batch.inputs[port].select(-1, static_cast<std::int64_t>(i)),
              "column " + quote_text(input.columns[i].name), "\"standardize\"", notes);
    }
    if (input.columns.empty())
      look_at(batch.inputs[port], "input " + quote_text(input.name), "\"standardize\"", notes);
  }
  for (std::size_t i = 0; i < batch.targets.size(); ++i) {
    if (batch.targets[i].scalar_type() == at::kDouble) {
      look_at(batch.targets[i], "target " + quote_text(spec.targets[i].name),
              "{\"use\": \"standardize\", \"target\": true}", notes);
    }
  }
  return notes;
}

}  // namespace treadle::internal
