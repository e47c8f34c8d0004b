// Reads a list of cases from standard input and writes the list of their results: see
// metric_cases.h.
#include <iostream>

#include <nlohmann/json.hpp>

#include "metric_cases.h"

int main() {
  const auto cases = nlohmann::json::parse(std::cin);
  auto results = nlohmann::json::array();
  for (const auto& one : cases)
    results.push_back(treadle::testing::run_case(one));
  std::cout << results << '\n';
}
