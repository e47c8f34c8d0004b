// For code that builds or runs torch::nn modules.
#include <torch/nn/module.h>
#include <torch/types.h>

#include "tensor.h"
