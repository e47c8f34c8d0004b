#pragma once

#include <span>

#include <treadle/search/tuner.h>

/// How trials compare, for tuners and for what a search comes to.
namespace treadle {

/// By how much a trial breaks its constraints: the sum of the values above 0. 0 where all hold;
/// infinite where one is not a number.
double violation(const Trial& trial);

/// Whether `a` is nowhere worse than `b` and somewhere better. Both have a number for each
/// objective, minimized.
bool dominates(std::span<const double> a, std::span<const double> b);

}  // namespace treadle
