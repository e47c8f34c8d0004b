#include <treadle/core/model/logged_values.h>

#include <algorithm>
#include <iterator>

#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>
#include <c10/util/StringUtil.h>

#include <treadle/base/error.h>

namespace treadle {
namespace {

struct Word {
  std::string_view word;
  Reduction reduction;
  at::Tensor (*apply)(const at::Tensor&);
};
constexpr Word kWords[] = {
    {"mean", Reduction::kMean, [](const at::Tensor& value) { return value.mean(); }},
    {"sum", Reduction::kSum, [](const at::Tensor& value) { return value.sum(); }},
    {"max", Reduction::kMax, [](const at::Tensor& value) { return value.max(); }},
    {"min", Reduction::kMin, [](const at::Tensor& value) { return value.min(); }},
    {"norm", Reduction::kNorm,
     [](const at::Tensor& value) {
       return at::linalg_vector_norm(value, 2, {}, false, at::kDouble);
     }},
};

/// A type in which sums of many elements keep their digits.
at::Tensor as_summable(const at::Tensor& value) {
  if (value.scalar_type() == at::kFloat || value.scalar_type() == at::kDouble)
    return value;
  return value.to(value.is_floating_point() ? at::kFloat : at::kDouble);
}

std::string known_words() {
  std::string text;
  for (const Word& word : kWords)
    text += (text.empty() ? "" : ", ") + std::string(word.word);
  return text;
}

}  // namespace

std::optional<Reduction> reduction_named(std::string_view word) {
  for (const Word& known : kWords) {
    if (known.word == word)
      return known.reduction;
  }
  return std::nullopt;
}

std::string_view name_of(Reduction reduction) {
  return std::find_if(std::begin(kWords), std::end(kWords),
                      [&](const Word& known) { return known.reduction == reduction; })
      ->word;
}

at::Tensor reduced(std::string_view name, const at::Tensor& value,
                   std::optional<Reduction> reduction) {
  const auto refuse = [&](const std::string& what) {
    throw UsageError("\"" + std::string(name) + "\" is " + what);
  };
  if (!value.defined())
    refuse("an undefined tensor: it has no value yet");
  if (value.numel() == 0)
    refuse(c10::str(value.sizes()) + ", without an element: it has no value");
  const at::NoGradGuard no_gradients;
  const at::Tensor plain = as_summable(value.detach());
  if (!reduction) {
    if (value.numel() != 1) {
      refuse(c10::str(value.sizes()) + "; expected one number: say how its elements become one (" +
             known_words() + ")");
    }
    // A copy: the value's memory may be used again.
    return plain.reshape({}).to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
  }
  const auto word = std::find_if(std::begin(kWords), std::end(kWords),
                                 [&](const Word& known) { return known.reduction == *reduction; });
  return word->apply(plain).to(at::kDouble);
}

void LoggedValues::add(std::string_view name, at::Tensor sum, std::int64_t rows) {
  const auto known =
      std::find_if(sums_.begin(), sums_.end(), [&](const Sum& one) { return one.name == name; });
  if (known == sums_.end()) {
    sums_.push_back({std::string(name), std::move(sum), rows});
    return;
  }
  // Not in place: the first sum may be another object's.
  const at::NoGradGuard no_gradients;
  known->sum = known->sum.add(sum);
  known->rows += rows;
}

void LoggedValues::add(std::string_view name, const at::Tensor& value,
                       std::optional<Reduction> reduction) {
  const at::Tensor one = reduced(name, value, reduction);
  add(name, rows_ == 1 ? one : one.mul(static_cast<double>(rows_)), rows_);
}

void LoggedValues::add(const LoggedValues& other) {
  // Copies: a captured step writes its values into the same memory again.
  for (const Sum& sum : other.sums_)
    add(sum.name, sum.sum.clone(), sum.rows);
}

std::vector<MetricValue> LoggedValues::means() const {
  std::vector<MetricValue> means;
  if (sums_.empty())
    return means;
  const at::Tensor numbers = state().tensor("sums");
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    means.push_back({sums_[i].name,
                     numbers.data_ptr<double>()[i] / static_cast<double>(sums_[i].rows),
                     Direction::kNone});
  }
  return means;
}

StateDict LoggedValues::do_state() const {
  StateDict state;
  if (sums_.empty())
    return state;
  std::vector<at::Tensor> sums;
  nlohmann::json names = nlohmann::json::array();
  nlohmann::json rows = nlohmann::json::array();
  for (const Sum& sum : sums_) {
    sums.push_back(sum.sum);
    names.push_back(sum.name);
    rows.push_back(sum.rows);
  }
  // Sums that were loaded lie on the CPU until a batch is added to them.
  const bool together = std::all_of(sums.begin(), sums.end(), [&](const at::Tensor& sum) {
    return sum.device() == sums.front().device();
  });
  if (!together) {
    for (at::Tensor& sum : sums)
      sum = sum.cpu();
  }
  state.put("sums", at::stack(sums).cpu());  // the one time that the device is waited for
  state.put("names", std::move(names));
  state.put("rows", std::move(rows));
  return state;
}

void LoggedValues::do_load_state(const StateDict& state) {
  clear();
  if (state.empty())
    return;
  const nlohmann::json& names = state.value("names");
  const nlohmann::json& rows = state.value("rows");
  const at::Tensor& sums = state.tensor("sums");
  if (sums.dim() != 1 || sums.scalar_type() != at::kDouble || !names.is_array() ||
      !rows.is_array() || names.size() != rows.size() ||
      sums.size(0) != static_cast<std::int64_t>(names.size())) {
    throw StorageError("the saved sums of logged values do not fit their names");
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    sums_.push_back({names[i].get<std::string>(), sums[static_cast<std::int64_t>(i)].clone(),
                     rows[i].get<std::int64_t>()});
  }
}

}  // namespace treadle
