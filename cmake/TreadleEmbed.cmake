# treadle_embed(<target> <symbol> <file>)
#   Puts a file's bytes into <target>. Sources of <target> read them with
#     #include <treadle/embedded/<symbol>.h>
#     std::string_view text = treadle::embedded::<symbol>();
#   The assembler reads the file (.incbin), so megabytes cost nothing to compile.

function(treadle_embed target symbol file)
  get_filename_component(path "${file}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/embedded")
  set(header "${folder}/treadle/embedded/${symbol}.h")
  set(source "${folder}/${symbol}.cpp")
  file(CONFIGURE OUTPUT "${header}" @ONLY CONTENT [[
#pragma once

#include <string_view>

namespace treadle::embedded {
std::string_view @symbol@();
}  // namespace treadle::embedded
]])
  file(CONFIGURE OUTPUT "${source}" @ONLY CONTENT [[
#include <treadle/embedded/@symbol@.h>

#include <cstddef>

__asm__(
    ".pushsection .rodata.treadle_embedded_@symbol@,\"a\",@progbits\n"
    ".hidden treadle_embedded_@symbol@_begin\n"
    ".hidden treadle_embedded_@symbol@_end\n"
    ".globl treadle_embedded_@symbol@_begin\n"
    ".globl treadle_embedded_@symbol@_end\n"
    ".balign 16\n"
    "treadle_embedded_@symbol@_begin:\n"
    ".incbin \"@path@\"\n"
    "treadle_embedded_@symbol@_end:\n"
    ".byte 0\n"
    ".popsection\n");

extern "C" {
extern const char treadle_embedded_@symbol@_begin[] __attribute__((visibility("hidden")));
extern const char treadle_embedded_@symbol@_end[] __attribute__((visibility("hidden")));
}

namespace treadle::embedded {

std::string_view @symbol@() {
  return {treadle_embedded_@symbol@_begin,
          static_cast<std::size_t>(treadle_embedded_@symbol@_end - treadle_embedded_@symbol@_begin)};
}

}  // namespace treadle::embedded
]])
  # The compiler does not see what the assembler reads; in a unity source nobody would.
  set_source_files_properties("${source}" PROPERTIES OBJECT_DEPENDS "${path}" SKIP_PRECOMPILE_HEADERS ON
                              SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE "${source}")
  target_include_directories(${target} PRIVATE "${folder}")
endfunction()
