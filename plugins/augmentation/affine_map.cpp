#include "affine_map.h"

#include <cmath>
#include <numbers>

namespace treadle::augmentation {

AffineMap affine_map(const AffineChange& change) {
  constexpr double kDegree = std::numbers::pi / 180;
  const double angle = change.angle * kDegree;
  const double shear_x = change.shear[0] * kDegree;
  const double shear_y = change.shear[1] * kDegree;
  // Rotation and shear, [[a, b], [c, d]], whose determinant is 1.
  const double a = std::cos(angle - shear_y) / std::cos(shear_y);
  const double b = -a * std::tan(shear_x) - std::sin(angle);
  const double c = std::sin(angle - shear_y) / std::cos(shear_y);
  const double d = -c * std::tan(shear_x) + std::cos(angle);
  AffineMap map;
  map.m = {d / change.scale, -b / change.scale, 0, -c / change.scale, a / change.scale, 0};
  const double x = change.about[0] + change.translate[0];
  const double y = change.about[1] + change.translate[1];
  map.m[2] = change.about[0] - map.m[0] * x - map.m[1] * y;
  map.m[5] = change.about[1] - map.m[3] * x - map.m[4] * y;
  return map;
}

}  // namespace treadle::augmentation
