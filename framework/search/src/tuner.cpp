#include <treadle/search/tuner.h>

#include <algorithm>
#include <string>

#include <treadle/base/error.h>
#include <treadle/core/components/plugin_call.h>

namespace treadle {
namespace {

// The values of a point that is outside the space, as far as they can be written.
std::string values_text(const SearchSpace& space, const Point& point) {
  if (point.size() != space.size())
    return std::to_string(point.size()) + " values for " + std::to_string(space.size()) +
           " dimensions";
  std::string text;
  for (const std::size_t d : space.order()) {
    const bool enabled = space.is_enabled(d, point);
    if (point.is_active(d) == enabled && (!enabled || space[d].contains(point[d])))
      continue;
    return "\"" + space[d].name + "\" " +
           (!point.is_active(d) ? "without a value"
            : !enabled          ? "with a value, though its condition does not hold"
                                : "= " + std::to_string(point[d]));
  }
  return text;
}

}  // namespace

std::int64_t suggestion_number(std::span<const Trial> visible, std::int64_t number) {
  return number - std::count_if(visible.begin(), visible.end(),
                                [](const Trial& trial) { return !trial.is_suggested; });
}

Tuner::~Tuner() = default;

std::optional<Point> Tuner::suggest(const SearchSpace& space, std::span<const Trial> visible,
                                    std::int64_t number, const RandomStreams& random) const {
  std::int64_t last = -1;
  for (const Trial& trial : visible) {
    TREADLE_EXPECTS(trial.number > last && trial.number < number,
                    "visible trials have ascending numbers below the one that is asked for");
    TREADLE_EXPECTS(trial.point.size() == space.size(), "the trials are of this space");
    last = trial.number;
  }
  std::optional<Point> point =
      call_plugin(*this, "suggest", [&] { return do_suggest(space, visible, number, random); });
  if (point && !space.contains(*point))
    refuse_result(*this, "suggest",
                  "returned a point outside the space: " + values_text(space, *point));
  return point;
}

bool Tuner::takes_several_objectives() const {
  return call_plugin(*this, "takes_several_objectives",
                     [&] { return do_takes_several_objectives(); });
}

}  // namespace treadle
