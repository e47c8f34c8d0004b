#pragma once

#include <memory>

#include <treadle/base/random.h>
#include <treadle/engine/batch_pipeline.h>

#include "row_supply.h"

namespace treadle::engine {

/// A stream in windows: each is read into memory as a whole and put in order there. A window has
/// StreamInput::window_rows rows, the last one what is left.
///
/// Its position is two numbers and the stream's own state at the beginning of a window, which is
/// noted whenever one is read. So the rows of a window are never saved: after a resume it is read
/// again.
std::unique_ptr<RowSupply> supply_of_stream(StreamInput input, Batching batching,
                                            RandomStreams random);

}  // namespace treadle::engine
