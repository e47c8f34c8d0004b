// Nothing is wrong with this one. Counts how often its entry ran: the number is the listener's
// answer.
#include <atomic>

#include <treadle/sdk.h>

#include "listener.h"

namespace {

std::atomic<int> entries{0};

class CountingListener : public Listener {
 public:
  explicit CountingListener(const treadle::Config& config) : Listener(config) {}

 private:
  void* do_ask(std::string_view interface_id) override {
    return interface_id == "treadle.test.entries/1" ? &entries : nullptr;
  }
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  ++entries;
  registrar.add<CountingListener>("listener");
}
