#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <treadle/base/random.h>
#include <treadle/host/catalog/workflow_document.h>
#include <treadle/search/search_space.h>
#include <treadle/search/tuner.h>

namespace treadle::internal {

/// Beside the values of a point: what people read of it.
inline constexpr const char* kPointDescription = "description";

/// A point that a search begins with: a value for each dimension that is given, nothing for one
/// that is drawn.
using GivenPoint = std::vector<std::optional<double>>;

/// The document's `search.initial`; none where it has no such key. Throws a DocumentError with
/// every value that is none of the space, and for more points than trials.
std::vector<GivenPoint> initial_points_of(const ResolvedWorkflow& workflow,
                                          const SearchSpace& space, std::int64_t trials);

/// The streams that the points of a search are drawn from.
RandomStreams streams_of_search(const ResolvedWorkflow& workflow);

/// The point of trial `number`: the initial one of that number, or what the tuner suggests for the
/// visible trials. Nothing where the tuner has no more. Values that an initial point leaves out are
/// drawn at random.
std::optional<Point> point_of_trial(const SearchSpace& space, const Tuner& tuner,
                                    std::span<const GivenPoint> initial,
                                    std::span<const Trial> visible, std::int64_t number,
                                    const RandomStreams& random);

/// The points of so many trials as far as no result decides on them: those that would be tried if
/// none of the trials ended. Fewer where the tuner has no more.
std::vector<Point> points_without_results(const SearchSpace& space, const Tuner& tuner,
                                          std::span<const GivenPoint> initial, std::int64_t trials,
                                          const RandomStreams& random);

/// The active values of a point in one line, for readers: "builder=hive(columns=2, rows=3),
/// learning_rate=0.0031". Each has the end of its path that no other dimension ends with.
std::string describe_point(const SearchSpace& space, const Point& point);

}  // namespace treadle::internal
