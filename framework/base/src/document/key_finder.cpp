#include "key_finder.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include <treadle/base/json_words.h>

#include "schema_keywords.h"

namespace treadle {
namespace {

using nlohmann::json;

// Below that a key is a detail that nobody looks for elsewhere; a component's defaults may contain
// the component, too.
constexpr int kMostLevels = 4;
constexpr std::size_t kMostShown = 3;

/// "training.epochs" for "/training/epochs", as --set takes it.
std::string path_text(const std::string& pointer) {
  std::string path = pointer.substr(std::min<std::size_t>(1, pointer.size()));
  std::replace(path.begin(), path.end(), '/', '.');
  return path;
}

/// "\"training.epochs\"" for "/training/epochs"; of the document's own keys, that they are.
std::string quoted_path(const std::string& pointer) {
  const bool on_top = pointer.rfind('/') == 0;
  return quote_text(path_text(pointer)) + (on_top ? " at the top level" : "");
}

/// "a", "a or b", "a, b or c"; of more, the first ones.
std::string alternatives(const std::vector<std::string>& words) {
  const std::size_t count = std::min(words.size(), kMostShown);
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0)
      text += i + 1 == count ? " or " : ", ";
    text += words[i];
  }
  return text;
}

/// How many steps up and down lead from one object to another.
std::size_t steps_between(std::string_view a, std::string_view b) {
  std::size_t same = 0;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()) + 1; ++i) {
    const bool a_ends = i >= a.size() || a[i] == '/';
    const bool b_ends = i >= b.size() || b[i] == '/';
    if (a_ends && b_ends)
      same = std::min({i, a.size(), b.size()});
    if (i >= a.size() || i >= b.size() || a[i] != b[i])
      break;
  }
  const auto steps = [same](std::string_view pointer) {
    return static_cast<std::size_t>(
        std::count(pointer.begin() + static_cast<std::ptrdiff_t>(same), pointer.end(), '/'));
  };
  return steps(a) + steps(b);
}

bool contains(std::string_view outer, std::string_view inner) {
  return inner.starts_with(outer) && (inner.size() == outer.size() || inner[outer.size()] == '/');
}

/// What may stand for a property that has several forms: its slot, if one of them is.
const json& slot_of(const json& property) {
  for (const std::string_view keyword : {"anyOf", "oneOf"}) {
    if (const json* branches = array_keyword(property, keyword)) {
      for (const json& branch : *branches) {
        if (!text_keyword(branch, "x-treadle-component").empty())
          return branch;
      }
    }
  }
  return property;
}

const json& member(const json& value, const std::string& key) {
  static const json kNothing;
  const json* found = any_keyword(value, key);
  return found == nullptr ? kNothing : *found;
}

/// One question: walks the document's objects, those that it leaves to their defaults included.
class Search {
 public:
  Search(const std::string& key, const std::string& from, const SchemaIndex& index)
      : key_(key), from_(from), index_(index) {}

  void walk(const json& value, const json& schema, const std::string& pointer, int level = 0) {
    const json* properties = object_keyword(schema, "properties");
    if (properties == nullptr || level > kMostLevels)
      return;
    if (pointer != from_ && properties->contains(key_))
      add(known_, pointer, quoted_path(child_pointer(pointer, key_)));
    for (const auto& [name, property] : properties->items()) {
      const json& slot = slot_of(property);
      const std::string inside = child_pointer(pointer, name);
      if (text_keyword(slot, "x-treadle-component").empty()) {
        look_for_element(property, pointer, inside);
        walk(member(value, name), slot, inside, level + 1);
      } else {
        walk_slot(member(value, name), slot, pointer, inside, level + 1);
      }
    }
  }

  std::string suggestion() {
    if (!known_.texts.empty())
      return "; did you mean " + alternatives(known_.texts) + "?";
    if (!named_.texts.empty())
      return "; " + named_.texts.front();
    // Last, because it reads every schema there is.
    for (const auto& [word, pointer] : slots_)
      look_at_others(word, pointer);
    if (!elsewhere_.texts.empty())
      return "; did you mean " + alternatives(elsewhere_.texts) + "?";
    return {};
  }

 private:
  /// What was found nearest to where the key stands.
  struct Nearest {
    std::size_t steps = 0;
    std::vector<std::string> texts;
  };

  void add(Nearest& nearest, const std::string& object, std::string text) {
    const std::size_t steps = steps_between(object, from_);
    if (!nearest.texts.empty() && steps > nearest.steps)
      return;
    if (steps < nearest.steps)
      nearest.texts.clear();
    nearest.steps = steps;
    nearest.texts.push_back(std::move(text));
  }

  void walk_slot(const json& value, const json& slot, const std::string& object,
                 const std::string& pointer, int level) {
    const std::string word(text_keyword(slot, "x-treadle-component"));
    look_for_name(word, slot, object, pointer);
    walk(value, slot, pointer, level);
    const json* use = value.is_string() ? &value : any_keyword(value, "use");
    if (use == nullptr || !use->is_string())
      use = default_use(slot);
    if (use != nullptr) {
      const FoundComponent chosen = index_.find(word, use->get_ref<const std::string&>());
      if (chosen.schema)
        walk(value, *chosen.schema, pointer, level);
    }
    // Whoever writes something into a slot has chosen its component.
    if (!contains(pointer, from_))
      slots_.emplace_back(word, pointer);
  }

  void look_for_element(const json& list, const std::string& object, const std::string& pointer) {
    const json* items = object_keyword(list, "items");
    if (items == nullptr)
      return;
    if (const std::string word(text_keyword(*items, "x-treadle-component")); !word.empty())
      look_for_name(word, *items, object, pointer);
  }

  /// The key may be the name of a component.
  void look_for_name(const std::string& word, const json& slot, const std::string& object,
                     const std::string& pointer) {
    if (any_keyword(slot, "x-treadle-use") == nullptr && index_.find(word, key_).schema) {
      add(named_, object,
          "it is a component (" + word + "): write {\"use\": " + quote_text(key_) + "} in " +
              quote_text(path_text(pointer)));
    }
  }

  /// The key may be a parameter of a component that could have been chosen.
  void look_at_others(const std::string& word, const std::string& pointer) {
    for (const std::string& name : index_.names(word)) {
      const FoundComponent found = index_.find(word, name);
      const json* properties = found.schema ? object_keyword(*found.schema, "properties") : nullptr;
      if (properties != nullptr && properties->contains(key_)) {
        add(elsewhere_, pointer,
            quote_text(path_text(child_pointer(pointer, key_))) +
                " with {\"use\": " + quote_text(name) + "}");
      }
    }
  }

  const std::string& key_;
  const std::string& from_;
  const SchemaIndex& index_;
  Nearest known_;
  Nearest named_;
  Nearest elsewhere_;
  std::vector<std::pair<std::string, std::string>> slots_;  // word and pointer
};

}  // namespace

KeyFinder::KeyFinder(const json& document, const json& schema, const SchemaIndex& index,
                     std::string pointer)
    : document_(document), schema_(schema), index_(index), pointer_(std::move(pointer)) {}

std::string KeyFinder::suggestion(const std::string& key, const std::string& from) const {
  Search search(key, from, index_);
  search.walk(document_, schema_, pointer_);
  return search.suggestion();
}

}  // namespace treadle
