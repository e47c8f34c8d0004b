#include <treadle/base/duration.h>

#include <stdexcept>

#include "targets.h"

namespace treadle::fuzz {

void duration(std::string_view bytes) {
  Duration read;
  try {
    read = Duration::parse(bytes);
  } catch (const std::invalid_argument& refused) {
    return promise_readable(refused.what(), 200 + 6 * bytes.size());
  }
  const std::string text = read.text();
  promise(Duration::parse(text) == read, "a duration written again is the same: " + text);
  promise(Duration::parse(text).text() == text, "a duration is written in one way: " + text);
  if (read.unit == Duration::Unit::kSeconds)
    return;
  const std::int64_t steps = read.steps(1000, 1'000'000);
  promise(steps >= 0, "a duration has no negative steps: " + text);
  promise(read.unit != Duration::Unit::kFraction || steps <= 1'000'000,
          "a share of the training is at most the training: " + text);
}

}  // namespace treadle::fuzz
