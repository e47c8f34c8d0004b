#include <treadle/core/components/state_dict.h>

#include <bit>
#include <cmath>

#include <treadle/base/component.h>
#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/core/components/plugin_call.h>

namespace treadle {
namespace {

template <typename Names>
std::string list_of(const Names& names) {
  std::string text;
  for (const auto& entry : names)
    text += (text.empty() ? "" : ", ") + plain_text(entry.first);
  return text.empty() ? "nothing" : text;
}

std::string list_of(const nlohmann::json& values) {
  std::string text;
  for (const auto& entry : values.items())
    text += (text.empty() ? "" : ", ") + plain_text(entry.key());
  return text.empty() ? "nothing" : text;
}

void expect_word(std::string_view name) {
  TREADLE_EXPECTS(!name.empty() && name.find('/') == std::string_view::npos,
                  "a state's name is a word without '/', got \"" + std::string(name) + "\"");
}

[[noreturn]] void missing(const char* what, std::string_view name, const std::string& present) {
  throw StorageError("saved state has no " + std::string(what) + " \"" + std::string(name) +
                     "\"; it has " + present);
}

/// Throws the exception in flight again, saying whose object failed if it is somebody's.
[[noreturn]] void rethrow_from(const Stateful& object, std::string_view method) {
  // A component may have several bases that are Provided, such as a DataProvider that is its own
  // RowReader.
  if (const auto* component = dynamic_cast<const Component*>(&object))
    detail::rethrow_from(*component, method);
  if (const auto* provided = dynamic_cast<const Provided*>(&object))
    detail::rethrow_from(*provided, method);
  throw;
}

}  // namespace

StateDict Stateful::state() const {
  try {
    return do_state();
  } catch (...) {
    rethrow_from(*this, "state");
  }
}

void Stateful::load_state(const StateDict& state) {
  try {
    do_load_state(state);
  } catch (...) {
    rethrow_from(*this, "load_state");
  }
}

void StateDict::put(std::string_view name, at::Tensor tensor) {
  expect_word(name);
  TREADLE_EXPECTS(tensor.defined(), "state \"" + std::string(name) + "\" is an undefined tensor");
  tensors_.insert_or_assign(std::string(name), std::move(tensor));
}

void StateDict::put(std::string_view name, nlohmann::json value) {
  expect_word(name);
  values_[std::string(name)] = std::move(value);
}

void StateDict::put(std::string_view name, StateDict part) {
  expect_word(name);
  parts_.insert_or_assign(std::string(name), std::move(part));
}

void StateDict::put_number(std::string_view name, const Number& number) {
  // Finite doubles survive JSON text exactly; for the others the bits are kept.
  if (number.is_known()) {
    put(name, nlohmann::json(number.value()));
  } else if (number.is_undefined()) {
    put(name, nlohmann::json({{"undefined", number.why()}}));
  } else {
    put(name, nlohmann::json({{"bits", std::bit_cast<std::uint64_t>(number.value())}}));
  }
}

bool StateDict::has_tensor(std::string_view name) const {
  return tensors_.contains(name);
}
bool StateDict::has_value(std::string_view name) const {
  return values_.contains(std::string(name));
}
bool StateDict::has_part(std::string_view name) const {
  return parts_.contains(name);
}

const at::Tensor& StateDict::tensor(std::string_view name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end())
    missing("tensor", name, list_of(tensors_));
  return found->second;
}

const nlohmann::json& StateDict::value(std::string_view name) const {
  const auto found = values_.find(std::string(name));
  if (found == values_.end())
    missing("value", name, list_of(values_));
  return *found;
}

const StateDict& StateDict::part(std::string_view name) const {
  const auto found = parts_.find(name);
  if (found == parts_.end())
    missing("part", name, list_of(parts_));
  return found->second;
}

Number StateDict::number(std::string_view name) const {
  const nlohmann::json& stored = value(name);
  if (stored.is_number())
    return stored.get<double>();
  if (stored.is_object() && stored.contains("bits")) {
    return std::bit_cast<double>(stored.at("bits").get<std::uint64_t>());
  }
  if (stored.is_object() && stored.contains("undefined"))
    return Number::undefined(stored.at("undefined").get<std::string>());
  throw StorageError("saved state \"" + std::string(name) + "\" is not a number");
}

StateDict StateDict::snapshot() const {
  StateDict copy(version_);
  copy.values_ = values_;
  for (const auto& [name, tensor] : tensors_) {
    copy.tensors_.emplace(name, tensor.detach().to(at::kCPU, tensor.scalar_type(),
                                                   /*non_blocking=*/false, /*copy=*/true));
  }
  for (const auto& [name, part] : parts_)
    copy.parts_.emplace(name, part.snapshot());
  return copy;
}

StateDict StateDict::to(c10::Device device) const {
  StateDict moved(version_);
  moved.values_ = values_;
  for (const auto& [name, tensor] : tensors_)
    moved.tensors_.emplace(name, tensor.to(device));
  for (const auto& [name, part] : parts_)
    moved.parts_.emplace(name, part.to(device));
  return moved;
}

}  // namespace treadle
