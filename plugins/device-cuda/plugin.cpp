#include <treadle/plugin.h>

#include "cuda.h"

TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::device_cuda::Cuda>("cuda");
}
