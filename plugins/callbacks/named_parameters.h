#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/model/model.h>

namespace treadle::callbacks {

/// The parameters of `model` that the words under `key` name: tags of the model's parts, or names,
/// with * for any text and ? for one character. Fails when a word names none.
std::vector<at::Tensor> parameters_named(const Model& model, const Config& config, const char* key);

}  // namespace treadle::callbacks
