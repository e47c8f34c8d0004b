#include <treadle/core/data/batch_stream.h>

#include <treadle/core/components/plugin_call.h>

namespace treadle {

bool BatchStream::next(Batch& batch) {
  return call_plugin(*this, "next", [&] { return do_next(batch); });
}

StateDict BatchSource::do_state(std::int64_t, std::int64_t) const {
  return {};
}

void BatchSource::do_load_state(const StateDict&) {}

}  // namespace treadle
