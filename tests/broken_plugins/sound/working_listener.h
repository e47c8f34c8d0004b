#pragma once

#include <treadle/core/history/run_observer.h>

// A component that works wherever an observer may stand.
class Listener : public treadle::RunObserver {
 public:
  explicit Listener(const treadle::Config&) {}
};
