#include "cell_use.h"

#include <algorithm>
#include <string>

#include <treadle/table/number_text.h>

namespace treadle::table {

bool is_infinity(std::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+'))
    text.remove_prefix(1);
  const auto same = [](char a, char b) { return (a | 0x20) == b; };
  const auto is = [&](std::string_view word) {
    return std::equal(text.begin(), text.end(), word.begin(), word.end(), same);
  };
  return is("inf") || is("infinity");
}

bool has_decimal_comma(std::string_view text) {
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos)
    return false;
  std::string with_point(text);
  with_point[comma] = '.';
  double value = 0;
  return read_whole_number(with_point, value);
}

Reads reads_for_kind(TargetKind kind) {
  switch (kind) {
    case TargetKind::kClasses:
      return Reads::kTargetClass;
    case TargetKind::kLabels:
      return Reads::kTargetLabel;
    case TargetKind::kDistribution:
      return Reads::kTargetShare;
    case TargetKind::kNumbers:
      break;
  }
  return Reads::kTargetNumber;
}

TargetKind kind_of(Reads reads) {
  return reads == Reads::kTargetClass   ? TargetKind::kClasses
         : reads == Reads::kTargetLabel ? TargetKind::kLabels
         : reads == Reads::kTargetShare ? TargetKind::kDistribution
                                        : TargetKind::kNumbers;
}

bool is_target(Reads reads) {
  return reads == Reads::kTargetClass || reads == Reads::kTargetByLabel ||
         reads == Reads::kTargetNumber || reads == Reads::kTargetLabel ||
         reads == Reads::kTargetShare;
}

Reads reads_for_target(const TargetColumns& target, const OpenRequest& request) {
  switch (target.kind) {
    case KindAsked::kClasses:
      return Reads::kTargetClass;
    case KindAsked::kNumbers:
      return Reads::kTargetNumber;
    case KindAsked::kLabels:
      return Reads::kTargetLabel;
    case KindAsked::kDistribution:
      return Reads::kTargetShare;
    case KindAsked::kAuto:
      break;
  }
  const bool is_single = target.columns.size() == 1;
  if (request.task == Task::kRegression)
    return Reads::kTargetNumber;
  if (request.task == Task::kClassification && is_single)
    return Reads::kTargetClass;
  if (request.takes(target.name, TargetKind::kNumbers))
    return is_single ? Reads::kTargetByLabel : Reads::kTargetNumber;
  if (is_single && request.takes(target.name, TargetKind::kClasses))
    return Reads::kTargetByLabel;
  for (const TargetKind kind : {TargetKind::kLabels, TargetKind::kDistribution}) {
    if (request.takes(target.name, kind))
      return reads_for_kind(kind);
  }
  return Reads::kTargetNumber;
}

}  // namespace treadle::table
