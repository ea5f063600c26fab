# What is installed: the tool, the headers of both public interfaces, the embedding library, the simulator of the NPU, the CMake
# package, and ports to read with a model to try them on. An installation needs nothing of the source tree.
# Included last by the root CMakeLists.txt. Plugins install themselves (candela_add_backend). Nothing that is installed has a
# search path of its own (hygiene_search_paths): it needs the system's libraries alone.

include(CMakePackageConfigHelpers)
set(CANDELA_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Candela)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/backend_api/include/candela DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT backend_api FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN "*.inc")
install(TARGETS candela_backend_api EXPORT Candela_backend_api COMPONENT backend_api)
install(EXPORT Candela_backend_api NAMESPACE Candela:: DESTINATION ${CANDELA_CMAKE_DIR} COMPONENT backend_api)

if(TARGET candela_sdk)
  set_target_properties(candela_sdk PROPERTIES EXPORT_NAME candela OUTPUT_NAME candela
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/candela DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    COMPONENT runtime_development FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
  candela_installs(candela_sdk)
  install(TARGETS candela_sdk EXPORT Candela_runtime
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT runtime_development
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT Candela_runtime NAMESPACE Candela:: DESTINATION ${CANDELA_CMAKE_DIR} COMPONENT runtime_development)
endif()

# Beside the embedding library, which it finds by $ORIGIN: whoever opens it has no search path for that.
if(TARGET candela_ort_ep)
  candela_installs(candela_ort_ep)
  install(TARGETS candela_ort_ep LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT onnxruntime)
endif()

# The simulator, for programs outside of this tree: one component for each library. Its headers include each other from the
# repository's root, which is this folder there.
foreach(name IN ITEMS simulator systemc)
  if(TARGET candela_${name})
    candela_installs(candela_${name})
    install(TARGETS candela_${name} EXPORT Candela_${name}
      ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${name}
      FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/candela/npu COMPONENT ${name})
    install(EXPORT Candela_${name} NAMESPACE Candela:: DESTINATION ${CANDELA_CMAKE_DIR} COMPONENT ${name})
  endif()
endforeach()
# What those libraries were built with has to be found by who links them.
find_package(fmt REQUIRED)
string(REGEX MATCH "^[0-9]+" CANDELA_FMT_MAJOR "${fmt_VERSION}")
set(CANDELA_SYSTEMC_VERSION "")
if(TARGET candela_systemc)
  candela_systemc_version(CANDELA_SYSTEMC_VERSION)
endif()

if(TARGET candela)
  candela_installs(candela)
  install(TARGETS candela RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
endif()

# A package of Debian has a file of its own for it.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT licence)

# Each builds against the installation: cmake -S <prefix>/share/candela/examples/<name>.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/backends/template ${PROJECT_SOURCE_DIR}/examples/hello_backend
  ${PROJECT_SOURCE_DIR}/examples/tiles_backend
  ${PROJECT_SOURCE_DIR}/examples/hello_run ${PROJECT_SOURCE_DIR}/examples/digits ${PROJECT_SOURCE_DIR}/examples/custom_op
  ${PROJECT_SOURCE_DIR}/examples/virtual_platform
  DESTINATION ${CMAKE_INSTALL_DATADIR}/candela/examples COMPONENT examples
  PATTERN "*.py" EXCLUDE PATTERN "requirements.txt" EXCLUDE)

# What the engine rtl of npu_sim builds: sources of the hardware description, and what makes a library of it.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/rtl DESTINATION ${CMAKE_INSTALL_DATADIR}/candela/npu_rtl COMPONENT backend_npu_sim
  FILES_MATCHING PATTERN "*.sv" PATTERN "*.vlt" PATTERN "synth" EXCLUDE)
install(FILES ${PROJECT_SOURCE_DIR}/simulator/rtl_model/library_entry.cpp ${PROJECT_SOURCE_DIR}/simulator/rtl_model/pins.h
  ${PROJECT_SOURCE_DIR}/simulator/rtl_model/verilated_top.h
  DESTINATION ${CMAKE_INSTALL_DATADIR}/candela/npu_rtl/simulator/rtl_model COMPONENT backend_npu_sim)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/CandelaConfig.cmake.in
  ${PROJECT_BINARY_DIR}/cmake/CandelaConfig.cmake
  INSTALL_DESTINATION ${CANDELA_CMAKE_DIR} PATH_VARS CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/CandelaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/cmake/CandelaConfig.cmake
  ${PROJECT_BINARY_DIR}/cmake/CandelaConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/CandelaBackend.cmake
  ${PROJECT_SOURCE_DIR}/cmake/CandelaSystemC.cmake
  DESTINATION ${CANDELA_CMAKE_DIR} COMPONENT backend_api)

# The same for programs that are built without CMake. A file finds the others from where it lies: an installation may be moved.
set(CANDELA_PC_DIR ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}/${CANDELA_PC_DIR} OUTPUT_VARIABLE CANDELA_PC_PREFIX)
math(EXPR CANDELA_FMT_NEXT "${CANDELA_FMT_MAJOR} + 1")
list(TRANSFORM CMAKE_DL_LIBS PREPEND "-l" OUTPUT_VARIABLE CANDELA_PC_DL)
# candela_pkg_config(<component> <name>)
function(candela_pkg_config component name)
  configure_file(${PROJECT_SOURCE_DIR}/packaging/pkgconfig/${name}.pc.in ${PROJECT_BINARY_DIR}/pkgconfig/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/pkgconfig/${name}.pc DESTINATION ${CANDELA_PC_DIR} COMPONENT ${component})
endfunction()
candela_pkg_config(backend_api candela-backend)
if(TARGET candela_sdk)
  candela_pkg_config(runtime_development candela)
endif()
if(TARGET candela_simulator)
  candela_pkg_config(simulator candela-simulator)
endif()
if(TARGET candela_systemc)
  candela_pkg_config(systemc candela-systemc)
endif()
