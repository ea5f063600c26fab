# candela_add_backend: the one way to build a backend, inside this repository and outside of it.
# Installed beside CandelaConfig.cmake; find_package(Candela COMPONENTS backend_api) brings it.

include_guard(GLOBAL)

# candela_add_backend(<name> SOURCES <file>... [LIBRARIES <library>...] [EXPORTS <symbol>...] [NO_INSTALL])
#
# Makes two targets from one compilation:
#   <name>_objects  an object library: link it into a program for static registration (gdb, sanitizers, coverage)
#   <name>          the plugin lib<name>.so. It exports cdl_backend_query and the symbols in EXPORTS, nothing else:
#                   symbols of static libraries that it links stay inside
# LIBRARIES are the backend's own third parties. The plugin is installed to <libdir>/candela.
function(candela_add_backend name)
  cmake_parse_arguments(BACKEND "NO_INSTALL" "" "SOURCES;LIBRARIES;EXPORTS" ${ARGN})
  if(NOT BACKEND_SOURCES)
    message(FATAL_ERROR "candela_add_backend(${name}): SOURCES is empty")
  endif()
  if(BACKEND_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "candela_add_backend(${name}): unknown arguments: ${BACKEND_UNPARSED_ARGUMENTS}")
  endif()

  add_library(${name}_objects OBJECT ${BACKEND_SOURCES})
  set_target_properties(${name}_objects PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_link_libraries(${name}_objects PUBLIC Candela::backend_api ${BACKEND_LIBRARIES})
  if(TARGET candela_build_flags)
    target_link_libraries(${name}_objects PRIVATE candela_build_flags)
  endif()

  set(exports "cdl_backend_query;${BACKEND_EXPORTS}")
  list(REMOVE_ITEM exports "")
  list(JOIN exports ";\n    " export_lines)
  set(map ${CMAKE_CURRENT_BINARY_DIR}/${name}.map)
  file(CONFIGURE OUTPUT ${map} CONTENT "{\n  global:\n    ${export_lines};\n  local: *;\n};\n" @ONLY)

  add_library(${name} MODULE)
  target_link_libraries(${name} PRIVATE ${name}_objects)
  set_target_properties(${name} PROPERTIES PREFIX lib LINKER_LANGUAGE CXX LINK_DEPENDS ${map})
  target_link_options(${name} PRIVATE -Wl,--version-script=${map} -Wl,--exclude-libs,ALL)
  if(CANDELA_SANITIZE)
    target_link_options(${name} PRIVATE -fsanitize=${CANDELA_SANITIZE})
  else()
    target_link_options(${name} PRIVATE -Wl,-z,defs)
  endif()
  set_property(GLOBAL APPEND PROPERTY CANDELA_PLUGINS ${name})
  if(NOT BACKEND_NO_INSTALL)
    include(GNUInstallDirs)
    install(TARGETS ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/candela COMPONENT plugins)
  endif()
endfunction()
