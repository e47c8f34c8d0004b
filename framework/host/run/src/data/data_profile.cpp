#include <treadle/host/run/data_profile.h>

#include <treadle/base/error.h>
#include <treadle/base/json_text.h>
#include <treadle/base/json_words.h>
#include <treadle/core/data/data_provider.h>

#include "data/dataset.h"
#include "document/document_slots.h"

namespace treadle {

TableProfile profile_data(const Runtime& runtime, const ResolvedWorkflow& workflow) {
  const Config slot = workflow.slot("data");
  const auto provider = internal::make_in<DataProvider>(runtime, slot, "data");
  const auto* const profiler = provider->ask<TableProfiler>();
  if (profiler == nullptr) {
    throw UsageError("the data " + quote_text(internal::name_in(slot)) +
                     " does not describe its columns; {\"use\": \"csv\"} does");
  }
  return profiler->profile();
}

nlohmann::json data_slot_for(const Runtime& runtime, const std::string& table) {
  if (table.starts_with('{')) {
    nlohmann::json slot = parse_json(table);
    if (!slot.is_object() || !slot.contains("use")) {
      throw UsageError("expected a file, or data as a document has it, {\"use\": NAME, …}, got " +
                       quote_text(table));
    }
    return slot;
  }
  for (const std::string& name : runtime.registry().names<DataProvider>()) {
    const nlohmann::json schema = runtime.registry().describe<DataProvider>(name).schema;
    if (internal::claims_file(schema, table))
      return {{"use", name}, {schema.at("x-treadle-source").get<std::string>(), table}};
  }
  return {{"use", "csv"}, {"path", table}};
}

}  // namespace treadle
