#include "contract_result.h"

#include <algorithm>
#include <sstream>

namespace treadle::cli {
namespace {

/// The text with each line behind `margin`.
std::string indented(const std::string& text, const std::string& margin) {
  std::string lines;
  std::istringstream source(text);
  for (std::string line; std::getline(source, line);)
    lines += margin + line + "\n";
  return lines;
}

std::string counted(std::int64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace

bool ContractResult::is_good() const {
  return std::all_of(components.begin(), components.end(),
                     [](const ComponentResult& one) { return one.failed.empty(); });
}

std::string ContractResult::text(const Terminal& terminal) const {
  std::string text;
  for (const ComponentResult& one : components) {
    const bool good = one.failed.empty();
    text += (good ? terminal.green("  ok    ") : terminal.red("  wrong ")) + one.component + ": " +
            counted(one.held, "claim") + (one.held == 1 ? " holds" : " hold") +
            (good ? "" : ", " + std::to_string(one.failed.size()) + " not") +
            (one.skipped == 0 ? "" : ", " + std::to_string(one.skipped) + " skipped") + "\n";
    for (const FailedClaim& claim : one.failed) {
      text += "          " + terminal.bold(claim.suite + "." + claim.claim) + " (" + claim.of_case +
              ")\n" + indented(claim.message, "            ");
    }
  }
  return text;
}

nlohmann::json ContractResult::json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const ComponentResult& one : components) {
    nlohmann::json failed = nlohmann::json::array();
    for (const FailedClaim& claim : one.failed) {
      failed.push_back({{"suite", claim.suite},
                        {"claim", claim.claim},
                        {"case", claim.of_case},
                        {"message", claim.message}});
    }
    list.push_back({{"component", one.component},
                    {"held", one.held},
                    {"skipped", one.skipped},
                    {"failed", std::move(failed)}});
  }
  return {{"good", is_good()}, {"components", std::move(list)}};
}

}  // namespace treadle::cli
