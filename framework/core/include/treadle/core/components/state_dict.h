#pragma once

#include <map>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

#include <treadle/base/number.h>

namespace treadle {

/// The state of an object, from which it continues as if it had never stopped: named tensors, a
/// JSON object of small values, and named parts that are StateDicts themselves.
///
/// `version` is the writer's own format number: raise it when the meaning of a name changes, and
/// read the older ones in load_state().
class StateDict {
 public:
  StateDict() = default;
  explicit StateDict(int version) : version_(version) {}

  int version() const noexcept { return version_; }
  bool empty() const { return tensors_.empty() && values_.empty() && parts_.empty(); }

  /// Names are words without '/'. A second value under one name replaces the first. Tensors are
  /// kept as handles: the caller clones what will change before the state is written.
  void put(std::string_view name, at::Tensor tensor);
  void put(std::string_view name, nlohmann::json value);
  void put(std::string_view name, StateDict part);

  /// A number that is read back with the same bits, also when it is NaN or infinite (which JSON
  /// cannot represent), or undefined.
  void put_number(std::string_view name, const Number& number);

  bool has_tensor(std::string_view name) const;
  bool has_value(std::string_view name) const;
  bool has_part(std::string_view name) const;

  /// Each throws StorageError naming what is missing and what is there instead.
  const at::Tensor& tensor(std::string_view name) const;
  const nlohmann::json& value(std::string_view name) const;
  const StateDict& part(std::string_view name) const;
  Number number(std::string_view name) const;

  const std::map<std::string, at::Tensor, std::less<>>& tensors() const { return tensors_; }
  const nlohmann::json& values() const { return values_; }
  const std::map<std::string, StateDict, std::less<>>& parts() const { return parts_; }

  /// The same state with tensors of its own, on the CPU: safe to write while training goes on.
  StateDict snapshot() const;
  /// The same state with every tensor on `device`: as it is where that is so already.
  StateDict to(c10::Device device) const;

 private:
  int version_ = 1;
  std::map<std::string, at::Tensor, std::less<>> tensors_;
  nlohmann::json values_ = nlohmann::json::object();
  std::map<std::string, StateDict, std::less<>> parts_;
};

/// Anything with a memory. state() followed by load_state() on a fresh object of the same class and
/// configuration gives an object that continues bitwise like the first.
class Stateful {
 public:
  virtual ~Stateful();

  StateDict state() const;
  /// Throws StorageError when `state` does not fit; the object is then unusable.
  void load_state(const StateDict& state);

 private:
  virtual StateDict do_state() const = 0;
  virtual void do_load_state(const StateDict& state) = 0;
};

}  // namespace treadle
