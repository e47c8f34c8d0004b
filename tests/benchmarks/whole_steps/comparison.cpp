#include "comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>

namespace treadle::benchmarks {
namespace {

using Values = std::vector<double>;  // one a round

int width_of(const std::string& name) {
  return std::max(10, static_cast<int>(name.size()));
}

/// As many digits as a reader can use.
int digits_for(double value) {
  return value < 1 ? 3 : value < 100 ? 2 : value < 1000 ? 1 : 0;
}

void print_row(const std::string& title, const std::vector<Contestant>& contestants,
               const std::function<std::optional<double>(std::size_t)>& value_of) {
  std::printf("  %9s", title.c_str());
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    const std::optional<double> value = value_of(i);
    const int width = width_of(contestants[i].name);
    if (value)
      std::printf("  %*.*f", width, digits_for(*value), *value);
    else
      std::printf("  %*s", width, "");
  }
  std::printf("\n");
  std::fflush(stdout);
}

/// How ours stands beside a peer, round by round.
struct Standing {
  std::string text;  ///< "runner / by hand"
  Values values;
  double even;  ///< where both are as good; less is better
};

Standing ratio(const std::string& ours, const Values& our_values, const std::string& peer,
               const Values& peer_values) {
  return {ours + " / " + peer, ratios(our_values, peer_values), 1};
}

Standing difference(const std::string& ours, const Values& our_values, const std::string& peer,
                    const Values& peer_values) {
  Standing standing{ours + " - " + peer, {}, 0};
  for (std::size_t round = 0; round < our_values.size(); ++round)
    standing.values.push_back(our_values[round] - peer_values[round]);
  return standing;
}

/// What the spread does not decide is a tie.
std::string verdict_on(const Standing& standing) {
  const Spread spread = spread_of(standing.values);
  if (spread.largest < standing.even)
    return "win ";
  return spread.smallest > standing.even ? "LOSS" : "tie ";
}

void print(const Standing& standing, const std::string& verdict, const Goal* goal) {
  const Spread spread = spread_of(standing.values);
  std::printf("    %-66s  %.2f (%.2f to %.2f)  %s", standing.text.c_str(), spread.median,
              spread.smallest, spread.largest, verdict.c_str());
  if (goal != nullptr) {
    std::printf("  goal %.2f: %s", goal->at_most,
                spread.median <= goal->at_most ? "reached" : "MISSED");
  }
  std::printf("\n");
}

std::string best_of(const std::vector<std::string>& names) {
  if (names.size() == 1)
    return names.front();
  std::string text = "best of";
  for (const std::string& name : names)
    text += (name == names.front() ? " " : "; ") + name;
  return text;
}

/// The least of these contestants in each round; empty when one was not measured.
Values least(const Measured& measured, const std::vector<std::string>& names) {
  Values result;
  for (const std::string& name : names) {
    const auto found = measured.find(name);
    if (found == measured.end())
      return {};
    result.resize(found->second.size(), std::numeric_limits<double>::infinity());
    for (std::size_t round = 0; round < result.size(); ++round)
      result[round] = std::min(result[round], found->second[round]);
  }
  return result;
}

/// Each of ours beside each of the others and those of ours before it, then the goals.
void print_standings(const std::vector<Contestant>& contestants, const std::vector<Goal>& goals,
                     const Measured& measured) {
  const auto has_goal = [&](const Contestant& ours, const Contestant& peer) {
    return std::any_of(goals.begin(), goals.end(), [&](const Goal& goal) {
      return !goal.is_difference && goal.ours == ours.name &&
             goal.peers == std::vector<std::string>{peer.name};
    });
  };
  for (const Contestant& ours : contestants) {
    for (const Contestant& peer : contestants) {
      const bool is_earlier = &peer < &ours;
      if (!ours.is_ours || (peer.is_ours && !is_earlier) || has_goal(ours, peer))
        continue;
      const Standing standing =
          ratio(ours.name, measured.at(ours.name), peer.name, measured.at(peer.name));
      print(standing, peer.is_ours ? "" : verdict_on(standing), nullptr);
    }
  }
  for (const Goal& goal : goals) {
    const Values ours = least(measured, {goal.ours});
    const Values peers = least(measured, goal.peers);
    if (ours.empty() || peers.empty()) {
      std::printf("    %s beside %s: not measured; the goal is %.2f\n", goal.ours.c_str(),
                  best_of(goal.peers).c_str(), goal.at_most);
    } else {
      const Standing standing =
          (goal.is_difference ? difference : ratio)(goal.ours, ours, best_of(goal.peers), peers);
      print(standing, verdict_on(standing), &goal);
    }
  }
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

Interval median_interval(std::vector<double> values, double coverage) {
  std::sort(values.begin(), values.end());
  const auto count = static_cast<int>(values.size());
  // The chance that one of the two ends misses: fewer than k of the values lie on that side.
  double fewer = std::pow(0.5, count);
  int k = 1;
  Interval interval{spread_of(values).median, 0, 0, 1 - 2 * fewer};
  for (double next = fewer; 2 * k < count; ++k) {
    next *= static_cast<double>(count - k + 1) / k;  // of exactly k
    if (1 - 2 * (fewer + next) < coverage)
      break;
    fewer += next;
    interval.coverage = 1 - 2 * fewer;
  }
  interval.low = values[static_cast<std::size_t>(k - 1)];
  interval.high = values[static_cast<std::size_t>(count - k)];
  return interval;
}

std::vector<double> ratios(const std::vector<double>& ours, const std::vector<double>& theirs) {
  Values values;
  for (std::size_t round = 0; round < ours.size(); ++round)
    values.push_back(ours[round] / theirs[round]);
  return values;
}

Measured measure_in_turn(const std::vector<Contestant>& contestants, const std::string& unit,
                         int rounds) {
  std::printf("  %s\n  %9s", unit.c_str(), "round");
  for (const Contestant& one : contestants)
    std::printf("  %*s", width_of(one.name), one.name.c_str());
  std::printf("\n");

  Measured measured;
  std::map<std::string, std::vector<Values>> beside;
  for (int round = 1; round <= rounds; ++round) {
    for (std::size_t place = 0; place < contestants.size(); ++place) {
      const std::size_t i = round % 2 == 1 ? place : contestants.size() - 1 - place;
      const Measure measure = contestants[i].measure();
      measured[contestants[i].name].push_back(measure.value);
      for (const auto& [name, value] : measure.beside) {
        std::vector<Values>& all = beside[name];
        all.resize(contestants.size());
        all[i].push_back(value);
      }
    }
    print_row(std::to_string(round), contestants,
              [&](std::size_t i) { return measured[contestants[i].name].back(); });
  }

  const auto spread = [&](std::size_t i) { return spread_of(measured[contestants[i].name]); };
  print_row("median", contestants, [&](std::size_t i) { return spread(i).median; });
  print_row("smallest", contestants, [&](std::size_t i) { return spread(i).smallest; });
  print_row("largest", contestants, [&](std::size_t i) { return spread(i).largest; });
  for (const auto& [name, values] : beside) {
    std::printf("  %s, median\n", name.c_str());
    print_row("", contestants, [&](std::size_t i) -> std::optional<double> {
      if (values[i].empty())
        return std::nullopt;
      return spread_of(values[i]).median;
    });
  }
  return measured;
}

void compare(const std::vector<Contestant>& contestants, const std::vector<Goal>& goals,
             const std::string& unit, int rounds) {
  const Measured measured = measure_in_turn(contestants, unit, rounds);
  std::printf("  beside each other, within a round: median (smallest to largest)\n");
  print_standings(contestants, goals, measured);
}

}  // namespace treadle::benchmarks
