#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace treadle {

/// One parameter, in words.
struct ParameterDescription {
  std::string name;  ///< "learning_rate"; parts of an object follow it as "early_stopping.patience"
  std::string type;  ///< "number", "one of \"relu\", \"gelu\"", "array of integers"
  std::string range;     ///< "> 0", ">= 1 and <= 256", "at least 1 element"; may be empty
  std::string fallback;  ///< the default as JSON, "required", or empty when it may be left out
  std::string unit;      ///< "seconds"; may be empty
  std::string help;      ///< one line
};

/// The description of a component that `plugins describe` prints.
struct ComponentDescription {
  std::string interface_word;
  std::string name;
  std::string title;  ///< may be empty
  std::string about;  ///< one line
  std::vector<ParameterDescription> parameters;
  /// The keys that documents have beside the parameters, of every component of the interface.
  std::vector<ParameterDescription> slot_keys;
  /// A piece of a document that uses it: `{"optimizer": {"use": …}}`; the component alone,
  /// `{"use": …}`, where it stands within others.
  nlohmann::json sample;

  /// For a terminal: a table, or a list where `columns` are too few for one, then the sample. Ends
  /// with a line feed.
  std::string text(std::size_t columns = static_cast<std::size_t>(-1)) const;
  nlohmann::json json() const;
};

/// Describes a component from its schema. `name` is what documents call it.
ComponentDescription describe_component(std::string_view interface_word, std::string_view name,
                                        const nlohmann::json& schema);

}  // namespace treadle
