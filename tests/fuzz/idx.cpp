#include <treadle/base/error.h>

#include "idx_file.h"
#include "memory_file.h"
#include "targets.h"

namespace treadle::fuzz {

void idx(std::string_view bytes) {
  constexpr std::int64_t kMostBytes = 1 << 20;
  const MemoryFile file(bytes);
  try {
    const treadle::idx::IdxArray array = treadle::idx::read_idx(file.path(), kMostBytes);
    promise(!array.header.shape.empty(), "an array has a dimension");
    promise(array.header.bytes() == static_cast<std::int64_t>(array.bytes.size()),
            "an array has the bytes of its shape");
    promise(array.bytes.size() <= kMostBytes, "an array has no more bytes than allowed");
  } catch (const DataError& error) {
    promise_readable(error.what(), 4000);
  }
}

}  // namespace treadle::fuzz
