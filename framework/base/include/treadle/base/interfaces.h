#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace treadle {

/// The two names of an interface: its `word` in documents and on the command line, its `id` between
/// host and plugin. The id's revision grows when a compiled plugin would misread the interface; 0
/// is a draft.
struct InterfaceName {
  std::string word;   ///< "optimizer"
  std::string id;     ///< "treadle.optimizer/0"
  std::string about;  ///< one line for people

  bool operator==(const InterfaceName&) const = default;
};

/// Treadle's own interfaces, in the order a run meets them.
std::span<const InterfaceName> interface_names();

/// The interfaces known in one place: Treadle's own and those that plugins declare. A plugin that
/// implements or uses an interface of another plugin declares it, too.
class InterfaceTable {
 public:
  /// Holds Treadle's own.
  InterfaceTable();

  /// Adds an interface. Word and id belong together: with a known word of another id, or a known id
  /// of another word, the table stays as it is and the earlier one is returned. Null otherwise.
  const InterfaceName* add(InterfaceName name);

  /// The id for a word, the word for an id; empty when there is none.
  std::string_view id(std::string_view word) const;
  std::string_view word(std::string_view id) const;

  /// Treadle's own first, then in the order they were added.
  std::span<const InterfaceName> names() const { return names_; }
  /// "unknown interface \"optimiser\"; did you mean \"optimizer\"?"
  std::string explain_unknown(std::string_view word) const;

 private:
  std::vector<InterfaceName> names_;
};

}  // namespace treadle
