#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/config.h>
#include <treadle/base/interfaces.h>
#include <treadle/base/problem.h>

/// Schemas: what a component's parameters, or a whole document, may be.
///
/// They are JSON Schema (draft-07), of which these keywords are understood: `type`, `enum`,
/// `const`, `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `minLength`, `maxLength`,
/// `pattern`, `items` (one schema), `minItems`, `maxItems`, `uniqueItems`, `properties`,
/// `required`, `additionalProperties`, `oneOf`, `anyOf`, `default`, `title`, `description`,
/// `examples`, `deprecated`, `$schema`, `$comment`. Two things differ from the letter of the
/// standard:
///  - a schema with `properties`, or of type object, allows no other keys unless it has
///    `additionalProperties`; in branches of a schema with `properties` this does not hold, because
///    the outer schema checks the keys;
///  - 5.0 is a number, not an integer.
///
/// Extensions:
///  - `x-treadle-component: "<interface word>"` is a slot: a name, or an object with the name under
///    `use`. The other keys are the named component's parameters and the slot's own `properties`.
///  - `x-treadle-use: "<name>"` beside it: the component of an object that has no `use`. Unlike a
///    `default`, it puts nothing where the slot is left out.
///  - `x-treadle-type`: `duration` (see Duration), `counted_duration` (one without wall time),
///  `path`
///    (made absolute), `fraction` (a number in (0, 1) or text such as "20%", made a number).
///  - `x-treadle-unit`: the unit of a number, for documentation.
///  - `x-treadle-multiple-of`: a pointer to the value of the whole document that a whole number is
///  a
///    multiple of.
///  - `x-treadle-type: "flow"`, in a plugin's source only: the steps of a model graph, written out
///  by
///    expanded_schema() when the plugin is built.
///
/// A component's schema also has `x-treadle-interface`, and `x-treadle-name` when the name is not
/// the file's. `x-treadle-excludes` and `x-treadle-sets` are what it requires of the whole
/// document: parts that have no meaning with it, by pointer and with the reason, and values that it
/// fixes,
/// `{"value": …, "why": …}`. Other top-level keys that begin with `x-treadle-` are its own.
namespace treadle {

/// The component that a slot names.
struct FoundComponent {
  std::shared_ptr<const nlohmann::json> schema;  ///< null when there is a problem
  std::string qualified_name;                    ///< "org.treadle.optimizers/adamw"
  std::string problem;           ///< why there is no single such component: one sentence
  bool plugin_at_fault = false;  ///< the problem is a plugin that offers it and cannot be used
};

/// The components that documents may name.
class SchemaIndex {
 public:
  virtual ~SchemaIndex();
  virtual FoundComponent find(std::string_view interface_word, std::string_view name) const = 0;
  /// All names that components of the interface have, for suggestions; none where nobody knows.
  virtual std::vector<std::string> names(std::string_view interface_word) const;
};

/// A component that stands in a value, and where.
struct UsedComponent {
  std::string interface_word;  ///< "optimizer"
  std::string name;            ///< as it is written: "adamw"
  std::string pointer;         ///< of its slot: "/optimizer"
  nlohmann::json parameters;  ///< as the component gets them: without "use" and the slot's own keys
};

/// A value after checking.
struct Checked {
  nlohmann::json value;           ///< defaults filled in, names of slots expanded, paths absolute
  std::vector<Problem> problems;  ///< in the order of the text; value may be used only without
  std::vector<UsedComponent> components = {};  ///< those within others first
};

/// Checks `value`, which stands at `pointer` of a document, and reports everything that is wrong.
/// Checking the result again gives the same value. Relative paths start at `base`; without one
/// they stay as they are. Expects a schema that check_schema() finds nothing wrong with.
Checked check(const nlohmann::json& value, const nlohmann::json& schema, const SchemaIndex& index,
              const PlaceIndex& places, std::string pointer = "",
              const std::filesystem::path& base = {});

/// The problems of a schema itself: keywords that are not understood, values of keywords that
/// make no sense, defaults that break their own schema (defaults of slots are left to check()). A
/// schema with `x-treadle-interface` is also held to the rules for components. Words for interfaces
/// must be among `interfaces`. Pointers and places are those of the schema.
std::vector<Problem> check_schema(const nlohmann::json& schema, const PlaceIndex& places,
                                  const InterfaceTable& interfaces = InterfaceTable());
std::vector<Problem> check_schema(const nlohmann::json& schema,
                                  const InterfaceTable& interfaces = InterfaceTable());

/// A schema as it stands in a plugin's source, with every `"x-treadle-type": "flow"` written out:
/// an array of slots for layers, whose own properties are the keys of a step itself (name, tag,
/// using, frozen). `"x-treadle-include": "table"` becomes the parameters that all tables share,
/// framework/table/schema/table.json, but for those that the schema has itself.
nlohmann::json expanded_schema(nlohmann::json schema);

/// The schema of a slot with a given component: the component's schema with `use` and the slot's
/// own properties among its properties.
nlohmann::json merged_schema(const nlohmann::json& component, const nlohmann::json& slot);

/// The component's parameters among what stands in a slot: all but `use` and the slot's own keys.
nlohmann::json component_parameters(nlohmann::json value, const nlohmann::json& slot);

/// The component's parameters that could not be set in the slot, because the slot has properties of
/// these names. A component that may stand in the slot has none.
std::vector<std::string> hidden_parameters(const nlohmann::json& component,
                                           const nlohmann::json& slot);

/// Every slot for `interface_word` in a schema, at any depth.
std::vector<nlohmann::json> slots_for(std::string_view interface_word,
                                      const nlohmann::json& schema);

}  // namespace treadle
