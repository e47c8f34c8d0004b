// For tests of what uses tensors or modules.
#include "test.h"

#include "nn.h"
