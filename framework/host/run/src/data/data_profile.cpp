#include <treadle/host/run/data_profile.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/core/data/data_provider.h>

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

}  // namespace treadle
