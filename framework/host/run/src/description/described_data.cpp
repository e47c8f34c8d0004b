#include <treadle/host/run/described_data.h>

#include <treadle/engine/thread_budget.h>

#include "components/document_components.h"
#include "data/dataset.h"
#include "description/described_rows.h"
#include "description/file_columns.h"
#include "document/document_slots.h"

namespace treadle {

describe::DataDescription describe_data(const Runtime& runtime, const ResolvedWorkflow& workflow) {
  runtime.expect_usable(workflow.resolved);
  describe::DataDescription description;
  internal::budget_for(workflow).run([&] {
    const internal::Dataset dataset(runtime, workflow);
    internal::DocumentComponents components(runtime, workflow, dataset);
    components.make_plan();
    internal::DescribedRows described =
        internal::described_rows(components, describe::kMostDescribedRows);
    internal::add_file_columns(runtime, components, described);
    description = describe::describe(described.table);
  });
  return description;
}

}  // namespace treadle
