# candela_add_backend: the one way to build a backend, inside this repository and outside of it.
# Installed beside CandelaConfig.cmake; find_package(Candela COMPONENTS backend_api) brings it.

include_guard(GLOBAL)

# candela_add_backend(<name> SOURCES <file>... [LIBRARIES <library>...] [DEFINES <definition>...]
#                     [EXPORTS <symbol>...] [COMPONENT <component>] [NO_INSTALL])
#
# Makes two targets:
#   candela_backend_<name>         the plugin lib/candela/libcandela_<name>.so of the build folder. It exports
#                                  cdl_backend_query and the symbols in EXPORTS, nothing else: symbols of static
#                                  libraries that it links stay inside
#   candela_backend_<name>_static  an object library: link it into a program for static registration (gdb, sanitizers,
#                                  coverage, embedding). Its entry is <name>_backend_query. Built when something needs it
# LIBRARIES are the backend's own third parties. The plugin is installed to <libdir>/candela; with NO_INSTALL it is for
# tests, lies in lib/candela-tests and is found by its path only. It searches the folders of LIBRARIES that lie outside of
# the project; for a shared library of its own give the plugin an INSTALL_RPATH that begins with $ORIGIN. COMPONENT: of its
# installation (plugins).
function(candela_add_backend name)
  cmake_parse_arguments(BACKEND "NO_INSTALL" "COMPONENT" "SOURCES;LIBRARIES;DEFINES;EXPORTS" ${ARGN})
  if(NOT BACKEND_SOURCES)
    message(FATAL_ERROR "candela_add_backend(${name}): SOURCES is empty")
  endif()
  if(BACKEND_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "candela_add_backend(${name}): unknown arguments: ${BACKEND_UNPARSED_ARGUMENTS}")
  endif()
  set(plugin candela_backend_${name})

  add_library(${plugin} MODULE ${BACKEND_SOURCES})
  add_library(${plugin}_static OBJECT EXCLUDE_FROM_ALL ${BACKEND_SOURCES})
  target_compile_definitions(${plugin}_static PRIVATE CDL_BACKEND_STATIC=${name})
  foreach(target IN ITEMS ${plugin} ${plugin}_static)
    set_target_properties(${target} PROPERTIES
      POSITION_INDEPENDENT_CODE ON
      C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    target_compile_definitions(${target} PRIVATE ${BACKEND_DEFINES})
    target_link_libraries(${target} PUBLIC Candela::backend_api ${BACKEND_LIBRARIES})
    if(TARGET candela_build_flags)
      target_link_libraries(${target} PRIVATE candela_build_flags)
    endif()
  endforeach()

  set(exports cdl_backend_query ${BACKEND_EXPORTS})
  list(JOIN exports ";\n    " export_lines)
  set(map ${CMAKE_CURRENT_BINARY_DIR}/${plugin}.map)
  file(CONFIGURE OUTPUT ${map} CONTENT "{\n  global:\n    ${export_lines};\n  local: *;\n};\n" @ONLY)
  # A project in C alone needs no C++ compiler.
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  set(language C)
  if(CXX IN_LIST languages)
    set(language CXX)
  endif()
  set_target_properties(${plugin} PROPERTIES
    PREFIX lib OUTPUT_NAME candela_${name} LINKER_LANGUAGE ${language} LINK_DEPENDS ${map}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/$<IF:$<BOOL:${BACKEND_NO_INSTALL}>,candela-tests,candela>)
  target_link_options(${plugin} PRIVATE -Wl,--version-script=${map} -Wl,--exclude-libs,ALL)
  if(CANDELA_SANITIZE)
    target_link_options(${plugin} PRIVATE -fsanitize=${CANDELA_SANITIZE})
  else()
    target_link_options(${plugin} PRIVATE -Wl,-z,defs)
  endif()
  # Linked with the search path that it is installed with: CMake fills one that it means to replace with empty entries, and
  # the loader takes those for the folder of whoever starts the program.
  set_target_properties(${plugin} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH_USE_LINK_PATH ON)
  set_property(GLOBAL APPEND PROPERTY CANDELA_PLUGINS ${plugin})
  if(NOT BACKEND_NO_INSTALL)
    include(GNUInstallDirs)
    if(NOT BACKEND_COMPONENT)
      set(BACKEND_COMPONENT plugins)
    endif()
    if(COMMAND candela_installs) # a backend that is a project of its own has it not
      candela_installs(${plugin})
    endif()
    install(TARGETS ${plugin} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/candela COMPONENT ${BACKEND_COMPONENT})
  endif()
endfunction()
