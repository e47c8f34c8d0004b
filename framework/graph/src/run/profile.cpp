#include <treadle/graph/profile.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace treadle::graph {
namespace {

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(width - std::min(width, text.size()), ' ');
}

}  // namespace

double LevelTiming::parallelism() const {
  if (nodes < 2 || wall_clock.count() == 0)
    return 1;
  return static_cast<double>(sum_of_nodes.count()) / static_cast<double>(wall_clock.count());
}

std::chrono::nanoseconds Profile::total() const {
  std::chrono::nanoseconds sum{0};
  for (const NodeTiming& node : nodes)
    sum += node.duration;
  return sum;
}

std::string Profile::text() const {
  std::vector<const NodeTiming*> order;
  std::size_t width = 4;
  for (const NodeTiming& node : nodes) {
    order.push_back(&node);
    width = std::max(width, node.id.size());
  }
  std::stable_sort(order.begin(), order.end(), [](const NodeTiming* a, const NodeTiming* b) {
    return a->duration > b->duration;
  });
  const double whole = std::max<double>(1, static_cast<double>(total().count()));
  std::string text = padded("node", width) + "      time   share  level\n";
  for (const NodeTiming* node : order) {
    std::array<char, 64> row{};
    std::snprintf(row.data(), row.size(), "%8s  %5.1f %%  %5zu\n",
                  short_time(node->duration).c_str(),
                  100 * static_cast<double>(node->duration.count()) / whole, node->level);
    text += padded(node->id, width) + "  " + row.data();
  }
  return text;
}

std::string short_time(std::chrono::nanoseconds time) {
  struct Unit {
    double size;
    const char* format;
  };
  constexpr std::array kUnits{Unit{1e9, "%.1fs"}, Unit{1e6, "%.1fms"}, Unit{1e3, "%.0fus"},
                              Unit{1, "%.0fns"}};
  const auto count = static_cast<double>(time.count());
  const auto unit = std::find_if(kUnits.begin(), kUnits.end() - 1,
                                 [&](const Unit& some) { return count >= some.size; });
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit->format, count / unit->size);
  return text.data();
}

}  // namespace treadle::graph
