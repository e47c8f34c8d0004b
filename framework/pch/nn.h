// For code that builds or runs torch::nn modules.
#include <torch/types.h>
#include <torch/nn/module.h>

#include "tensor.h"
