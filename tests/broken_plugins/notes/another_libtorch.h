// What the compiler of a foreign plugin sees.
#include <torch/version.h>

#undef TORCH_VERSION
#define TORCH_VERSION "99.1.0"
