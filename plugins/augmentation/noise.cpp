#include "noise.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <ATen/ops/arange.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/tensor/task_random.h>

#include "normal_draws.h"

namespace treadle::augmentation {
namespace {

/// A column of numbers that changes.
struct Change {
  std::size_t column = 0;
  double deviation = 0;
};

template <typename T>
void add(T& value, double deviation, NormalDraws& normal) {
  value = static_cast<T>(static_cast<double>(value) + deviation * normal.next());
}

template <typename T>
void add_to_all(at::Tensor& values, double deviation, RandomBits seeds) {
  const std::int64_t rows = values.size(0);
  const std::int64_t width = rows > 0 ? values.numel() / rows : 0;
  T* value = values.data_ptr<T>();
  for (std::int64_t row = 0; row < rows; ++row) {
    NormalDraws normal(RandomBits(seeds.next()));
    for (const T* const end = value + width; value < end; ++value)
      add(*value, deviation, normal);
  }
}

template <typename T>
void add_to_columns(at::Tensor& values, const std::vector<double>& deviations, RandomBits seeds) {
  std::vector<Change> changes;
  for (std::size_t column = 0; column < deviations.size(); ++column) {
    if (deviations[column] > 0)
      changes.push_back({column, deviations[column]});
  }
  const std::int64_t rows = values.size(0);
  const std::int64_t width = rows > 0 ? values.numel() / rows : 0;
  T* step = values.data_ptr<T>();
  for (std::int64_t row = 0; row < rows; ++row) {
    NormalDraws normal(RandomBits(seeds.next()));
    for (const T* const end = step + width; step < end; step += deviations.size()) {
      for (const Change& change : changes)
        add(step[change.column], change.deviation, normal);
    }
  }
}

bool changes_nothing(const std::vector<double>& deviations) {
  return std::all_of(deviations.begin(), deviations.end(), [](double d) { return d == 0; });
}

}  // namespace

Noise::Noise(const Config& config) : Augmentation(config, "noise") {
  const nlohmann::json& json = config.json();
  if (config.has("std") && json["std"].is_object()) {
    if (config.has("columns") || config.has("inputs")) {
      config.fail("std", "names columns and inputs itself; leave out \"columns\" and \"inputs\"");
    }
    if (json["std"].empty())
      config.fail("std", "must name a column or an input");
    for (const auto& [name, deviation] : json["std"].items())
      named_.push_back({name, NameOf::kEither, deviation.get<double>()});
    return;
  }
  deviation_ = config.get_or("std", 0.1);
  for (const auto& name : config.get_or("columns", std::vector<std::string>()))
    named_.push_back({name, NameOf::kColumn, deviation_});
  for (const auto& name : config.get_or("inputs", std::vector<std::string>()))
    named_.push_back({name, NameOf::kInput, deviation_});
}

Noise::~Noise() = default;

const Noise::Named* Noise::find(const std::string& name, NameOf of) const {
  const auto found = std::find_if(named_.begin(), named_.end(), [&](const Named& named) {
    return named.name == name && (named.of == of || named.of == NameOf::kEither);
  });
  return found == named_.end() ? nullptr : &*found;
}

void Noise::expect_known_names(const DataSpec& spec) const {
  std::vector<std::string> columns;
  std::vector<std::string> inputs;
  for (const PortSpec& port : spec.inputs) {
    inputs.push_back(port.name);
    for (const Column& column : port.columns)
      columns.push_back(column.name);
  }
  std::vector<std::string> both = columns;
  both.insert(both.end(), inputs.begin(), inputs.end());
  struct Kind {
    const char* there_is_no;
    const char* there_are;
    const std::vector<std::string>& present;
  };
  const std::array<Kind, 3> kinds = {Kind{"column ", "; the columns are ", columns},
                                     Kind{"input ", "; the inputs are ", inputs},
                                     Kind{"column or input ", "; there are ", both}};
  for (const Named& named : named_) {
    const auto& [there_is_no, there_are, present] = kinds[static_cast<std::size_t>(named.of)];
    if (std::find(present.begin(), present.end(), named.name) == present.end()) {
      throw DataError(component() + ": there is no " + there_is_no + quote_text(named.name) +
                      there_are + name_list(present) + did_you_mean(named.name, present));
    }
  }
}

Noise::Deviations Noise::deviations_of(const PortSpec& port) const {
  const Named* const input = find(port.name, NameOf::kInput);
  const bool is_numbers = (port.role == Role::kFeatures || port.role == Role::kImage) &&
                          c10::isFloatingType(port.dtype);
  if (!is_numbers && port.columns.empty()) {
    if (input != nullptr) {
      throw DataError(component() + ": input " + quote_text(port.name) +
                      " has integers; only numbers can have noise");
    }
    return {0};
  }
  const double of_input = input != nullptr ? input->deviation : named_.empty() ? deviation_ : 0;
  if (port.columns.empty())
    return {of_input};
  Deviations deviations;
  for (const Column& column : port.columns) {
    const Named* const named = find(column.name, NameOf::kColumn);
    const bool is_category = !column.categories.empty();
    if (named != nullptr && is_category) {
      throw DataError(component() + ": column " + quote_text(column.name) +
                      " is a category; only numbers can have noise");
    }
    deviations.push_back(is_category ? 0 : named != nullptr ? named->deviation : of_input);
  }
  return deviations;
}

std::vector<Noise::Deviations> Noise::choose(const DataSpec& spec) const {
  expect_known_names(spec);
  std::vector<Deviations> chosen;
  for (const PortSpec& port : spec.inputs)
    chosen.push_back(deviations_of(port));
  return chosen;
}

void Noise::prepare(const DataSpec& before) {
  deviations_ = choose(before);
  on_device_.clear();
  for (const Deviations& deviations : deviations_)
    on_device_.emplace_back(at::tensor(deviations, at::kDouble));
  lengths_.assign(before.inputs.size(), std::nullopt);
  for (std::size_t i = 0; i < before.inputs.size(); ++i) {
    const PortSpec& port = before.inputs[i];
    if (port.role != Role::kLengths)
      continue;
    const std::size_t of = before.input_index(port.of);
    if (!before.inputs[of].shape.empty() && before.inputs[of].shape[0] == kVaries)
      lengths_[of] = i;
  }
}

DataSpec Noise::do_output_spec(const DataSpec& before) const {
  choose(before);
  return before;
}

/// Numbers of the device's own generator, which are others than the host's.
void Noise::add_on_device(at::Tensor& values, std::size_t port, const ApplyContext& context) const {
  const TaskRandom random(device_seed(context, port));
  values.add_(at::randn_like(values).mul_(on_device_[port].with(values.options())));
}

void Noise::change(Batch& batch, const ApplyContext& context) const {
  if (!context.training)
    return;
  for (std::size_t port = 0; port < deviations_.size(); ++port) {
    const Deviations& deviations = deviations_[port];
    if (changes_nothing(deviations))
      continue;
    at::Tensor& values = batch.inputs[port];
    const auto width = static_cast<std::int64_t>(deviations.size());
    TREADLE_EXPECTS(width == 1 || (values.dim() >= 2 && values.size(-1) == width),
                    "the batch has other columns than the data this transform was fitted on");
    TREADLE_EXPECTS(values.scalar_type() == at::kFloat || values.scalar_type() == at::kDouble,
                    "inputs are float32 or float64");
    values = values.contiguous();
    const bool is_single = values.scalar_type() == at::kFloat;
    const RandomBits seeds = draws(context, port);  // of the rows, whose draws differ in number
    if (context.tensors_only) {
      add_on_device(values, port, context);
    } else if (width == 1) {
      (is_single ? add_to_all<float> : add_to_all<double>)(values, deviations[0], seeds);
    } else {
      (is_single ? add_to_columns<float> : add_to_columns<double>)(values, deviations, seeds);
    }
    if (!lengths_[port])
      continue;
    const at::Tensor& lengths = batch.inputs[*lengths_[port]];
    at::Tensor padding =
        at::arange(values.size(1), lengths.options()).unsqueeze(0).ge(lengths.unsqueeze(1));
    while (padding.dim() < values.dim())
      padding = padding.unsqueeze(-1);
    values.masked_fill_(padding, 0);
  }
}

}  // namespace treadle::augmentation
