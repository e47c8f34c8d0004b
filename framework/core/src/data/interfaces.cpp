// Out-of-line destructors give every interface one home for its virtual table and type information,
// so casts and exceptions work across plugins.
#include <treadle/core/data/abilities/contiguous_rows.h>
#include <treadle/core/data/abilities/data_notes.h>
#include <treadle/core/data/abilities/local_times.h>
#include <treadle/core/data/abilities/source_columns.h>
#include <treadle/core/data/abilities/source_hash.h>
#include <treadle/core/data/abilities/table_profile.h>
#include <treadle/core/data/batch_stream.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/core/data/row_reader.h>
#include <treadle/core/data/transform.h>

namespace treadle {

BatchSource::~BatchSource() = default;
BatchStream::~BatchStream() = default;
ContiguousRows::~ContiguousRows() = default;
DataNotes::~DataNotes() = default;
DataProvider::~DataProvider() = default;
LocalTimes::~LocalTimes() = default;
RowReader::~RowReader() = default;
SourceColumns::~SourceColumns() = default;
SourceHash::~SourceHash() = default;
TableProfiler::~TableProfiler() = default;
Transform::~Transform() = default;

}  // namespace treadle
