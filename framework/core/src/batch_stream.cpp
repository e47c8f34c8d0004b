#include <treadle/core/batch_stream.h>

#include <treadle/core/plugin_call.h>

namespace treadle {

bool BatchStream::next(Batch& batch) {
  return call_plugin(*this, "next", [&] { return do_next(batch); });
}

}  // namespace treadle
