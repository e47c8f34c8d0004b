#pragma once

#include <optional>
#include <string>
#include <vector>

/// Keys whose value need not show in the results, with the reason for each. Every other key of
/// every document has an effect, or is an error.
namespace treadle::testing {

/// `label` with * for any text: "training/standard:checkpoint*". A component's key follows its
/// name, a key of the top level a colon.
struct KeyReason {
  std::string label;
  std::string reason;
};

/// Keys that change no result, whatever their value: held as strictly as the others.
std::optional<std::string> why_without_effect(const std::string& label);

/// Keys that may have an effect, but not in documents as they are drawn here: however many are
/// tried without one, nothing is concluded.
std::optional<std::string> why_never_here(const std::string& label);

/// Keys that change results only where something comes up to them: a bound, a patience, a time. One
/// document says nothing about them, many do.
std::optional<std::string> why_seldom(const std::string& label);

}  // namespace treadle::testing
