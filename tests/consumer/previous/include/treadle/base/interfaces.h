#pragma once

#include <span>
#include <string_view>

namespace treadle {

/// How an interface is spoken of: in a document and on the command line by its `word`, between
/// host and plugin by its `id`, whose revision grows when a compiled plugin would misread it.
struct InterfaceName {
  std::string_view word;   ///< "optimizer"
  std::string_view id;     ///< "treadle.optimizer/1"
  std::string_view about;  ///< one line for people
};

/// Every interface a plugin can implement in this version, in the order a run meets them.
std::span<const InterfaceName> interface_names();

/// The id for a word, the word for an id; empty when there is none.
std::string_view interface_id(std::string_view word);
std::string_view interface_word(std::string_view id);

}  // namespace treadle
