#pragma once

#include <string_view>

namespace treadle::cli {

/// Lets a crash say whose code it happened in before it ends the process as it would have: machine
/// code of a plugin that was damaged, or is wrong, throws nothing. Handlers that somebody else has
/// set, as sanitizers do, stay.
void report_fatal_signals();

/// What the report says to do in the end; cut after 4096 bytes. Not beside another call.
void set_crash_remedy(std::string_view text);

}  // namespace treadle::cli
