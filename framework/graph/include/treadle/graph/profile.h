#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace treadle::graph {

/// How long one node took in a forward, by the clock of the device it ran on where the profile has
/// a backend. Without one, on a device that works by itself, it is the time to start its work.
struct NodeTiming {
  std::string id;
  std::string tag;  ///< the first, if any
  std::chrono::nanoseconds duration{0};
  std::size_t level = 0;
};

/// The nodes of one level together: from the start of the first to the end of the last, and the sum
/// of their own times.
struct LevelTiming {
  std::size_t index = 0;
  std::chrono::nanoseconds wall_clock{0};
  std::chrono::nanoseconds sum_of_nodes{0};
  std::size_t nodes = 0;

  /// How many nodes worked at once, on average; 1 for a single node.
  double parallelism() const;
};

/// The times of a graph's nodes in its last forward; those of graphs within are in the profile of
/// their state.
struct Profile {
  std::vector<NodeTiming> nodes;  ///< in the order of the graph
  std::vector<LevelTiming> levels;

  /// The sum over all nodes.
  std::chrono::nanoseconds total() const;
  /// A table, the slowest node first.
  std::string text() const;
};

/// "850ns", "42us", "1.2ms", "3.4s": a time as text.
std::string short_time(std::chrono::nanoseconds time);

}  // namespace treadle::graph
