#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace treadle {

/// The use that a network makes of a parameter, as far as it matters to an optimizer.
enum class ParameterRole : std::uint8_t {
  kHidden,  ///< of a hidden layer: a matrix [out, in], a kernel [out, in, ...], a vector
  kStack,   ///< as many matrices of hidden layers as dimension 0 has elements
  kTable,   ///< a vector in each row: embeddings, positions, tokens, biases of several members
  kOutput,  ///< of a layer whose result is an output of the model
  kTied     ///< of hidden layers, under several names
};
/// "hidden", "stack", "table", "output", "tied".
std::string_view name_of(ParameterRole role);

/// Names the roles of its own parameters, those of modules within it included.
///
/// Implemented by layers with tables or stacks among their parameters, and by models that know
/// which of their layers give the outputs. Of two roles for one parameter, that of the layer counts
/// if it is kTable, else that of the outermost module.
class NamesParameterRoles {
 public:
  virtual ~NamesParameterRoles();
  using Roles = std::vector<std::pair<at::Tensor, ParameterRole>>;
  /// Parameters (the module's own handles) that are not kHidden.
  virtual Roles parameter_roles() const = 0;

 protected:
  /// One role for those of `parameters` that are defined.
  static Roles all(ParameterRole role, std::initializer_list<at::Tensor> parameters);
};

}  // namespace treadle
