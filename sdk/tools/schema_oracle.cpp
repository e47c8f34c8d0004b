#include "schema_oracle.h"

// Without it valijson ends the process where others throw.
#define VALIJSON_USE_EXCEPTIONS 1

#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

namespace treadle {
namespace {

void populate(const nlohmann::json& schema, valijson::Schema& parsed) {
  valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
  parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(schema), parsed);
}

}  // namespace

std::optional<std::string> schema_mistake(const nlohmann::json& schema) {
  valijson::Schema parsed;
  try {
    populate(schema, parsed);
  } catch (const std::exception& error) {
    return error.what();
  }
  return std::nullopt;
}

bool is_valid(const nlohmann::json& value, const nlohmann::json& schema) {
  valijson::Schema parsed;
  populate(schema, parsed);
  valijson::Validator validator(valijson::Validator::kStrongTypes);
  return validator.validate(parsed, valijson::adapters::NlohmannJsonAdapter(value), nullptr);
}

}  // namespace treadle
