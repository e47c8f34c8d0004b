# cmake -DLIBRARY=<file> -P TreadleInstallForMe.cmake
#   Puts a plugin's library where workflow-runner looks for the user's own plugins. Under another name first: a library
#   that is overwritten while a program runs it takes the program down.
set(data "$ENV{XDG_DATA_HOME}")
if(NOT IS_ABSOLUTE "${data}")
  set(data "$ENV{HOME}/.local/share")
endif()
set(folder "${data}/treadle/plugins")
get_filename_component(name "${LIBRARY}" NAME)
file(MAKE_DIRECTORY "${folder}")
file(COPY_FILE "${LIBRARY}" "${folder}/.${name}.new")
file(RENAME "${folder}/.${name}.new" "${folder}/${name}")
message(STATUS "Installed ${folder}/${name}")
