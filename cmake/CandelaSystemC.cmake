# SystemC as the target SystemC::systemc. simulator/CMakeLists.txt reads this, and CandelaConfig.cmake, beside which it is installed:
# both find the same one.

# candela_find_systemc([GLOBAL])
# Makes the target SystemC::systemc where SystemC is found: CANDELA_SYSTEMC_INCLUDE and CANDELA_SYSTEMC_LIBRARY, which are looked
# for in SYSTEMC_HOME of the environment and in the folders of the system. One that is there already stays, such as that of SystemC's
# own package SystemCLanguage. GLOBAL: what is made is seen by all folders of the project.
function(candela_find_systemc)
  if(TARGET SystemC::systemc)
    return()
  endif()
  find_path(CANDELA_SYSTEMC_INCLUDE systemc HINTS ENV SYSTEMC_HOME PATH_SUFFIXES include DOC "the folder of SystemC's headers")
  find_library(CANDELA_SYSTEMC_LIBRARY systemc HINTS ENV SYSTEMC_HOME PATH_SUFFIXES lib lib64 lib-linux64 DOC "SystemC's library")
  if(CANDELA_SYSTEMC_INCLUDE AND CANDELA_SYSTEMC_LIBRARY)
    add_library(SystemC::systemc UNKNOWN IMPORTED ${ARGN})
    set_target_properties(SystemC::systemc PROPERTIES
      IMPORTED_LOCATION ${CANDELA_SYSTEMC_LIBRARY}
      INTERFACE_INCLUDE_DIRECTORIES ${CANDELA_SYSTEMC_INCLUDE})
  endif()
endfunction()

# candela_systemc_version(<variable>): that of the target's headers, such as 2.3.4; empty where they do not say it.
function(candela_systemc_version variable)
  set(${variable} "" PARENT_SCOPE)
  get_target_property(folders SystemC::systemc INTERFACE_INCLUDE_DIRECTORIES)
  find_file(header sysc/kernel/sc_ver.h PATHS ${folders} NO_DEFAULT_PATH NO_CACHE)
  if(NOT header)
    return()
  endif()
  set(version "")
  foreach(part IN ITEMS MAJOR MINOR PATCH)
    file(STRINGS ${header} line REGEX "^#[ ]*define SC_VERSION_${part} +[0-9]+" LIMIT_COUNT 1)
    string(REGEX MATCH "[0-9]+" number "${line}")
    list(APPEND version ${number})
  endforeach()
  list(JOIN version . version)
  set(${variable} "${version}" PARENT_SCOPE)
endfunction()
