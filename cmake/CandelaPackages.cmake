# Packages of what is installed: `cpack -G DEB` and `cpack -G TGZ` in a build folder; scripts/packages builds for that and calls
# them. Included after CandelaInstall by the root CMakeLists.txt: each component of an installation belongs to one package
# (the test package_packages holds us to it). The archive is a plain installation, which may lie anywhere.

set(CPACK_PACKAGE_NAME candela)
set(CPACK_PACKAGE_VENDOR Candela)
set(CPACK_PACKAGE_CONTACT "Candela maintainers <maintainers@candela.invalid>" CACHE STRING "Who answers for packages")
# CPack's own, which it leaves away: each package has a first line of its own.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${CMAKE_PROJECT_NAME} built using CMake")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
string(TOLOWER ${CMAKE_SYSTEM_NAME} system)
set(CPACK_PACKAGE_FILE_NAME candela-${PROJECT_VERSION}-${system}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_OUTPUT_FILE_PREFIX ${PROJECT_BINARY_DIR}/packages)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_COMPONENTS_ALL "")

set(debian ${PROJECT_SOURCE_DIR}/packaging/debian)
set(CANDELA_DEBIAN_VERSION ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
find_program(CANDELA_GZIP gzip)

# candela_compressed(<variable> <file> <name>): the file as <name>.gz, the same bytes whenever it is made; itself without gzip.
function(candela_compressed variable file name)
  set(copy ${PROJECT_BINARY_DIR}/packaging/${name})
  configure_file(${file} ${copy} COPYONLY)
  set(${variable} ${copy} PARENT_SCOPE)
  if(CANDELA_GZIP)
    execute_process(COMMAND ${CANDELA_GZIP} -9nkf ${copy} COMMAND_ERROR_IS_FATAL ANY)
    set(${variable} ${copy}.gz PARENT_SCOPE)
  endif()
endfunction()
candela_compressed(changelog ${debian}/changelog changelog.Debian)

# candela_debian_package(<name> COMPONENTS <component>... SUMMARY <line> TEXT <text> SECTION <section> [ARCHITECTURE all]
#   [DEPENDS <dependency>...] [RECOMMENDS <package>...] [SUGGESTS <package>...] [CONTROL <file>...])
# What the libraries of the system are that it needs is read from its programs; DEPENDS adds to that. Each has a component more,
# debian_<name>: what Debian wants of any package, and no other installation has.
function(candela_debian_package name)
  cmake_parse_arguments(P "" "SUMMARY;SECTION;ARCHITECTURE;TEXT" "COMPONENTS;DEPENDS;RECOMMENDS;SUGGESTS;CONTROL" ${ARGN})
  if(P_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "candela_debian_package(${name}): not understood: ${P_UNPARSED_ARGUMENTS}")
  endif()
  set(doc ${CMAKE_INSTALL_DATADIR}/doc/${name})
  set(own debian_${name})
  install(FILES ${debian}/copyright ${changelog} DESTINATION ${doc} COMPONENT ${own} EXCLUDE_FROM_ALL)
  file(READ ${debian}/lintian-overrides overrides)
  if(EXISTS ${debian}/${name}.lintian-overrides)
    file(READ ${debian}/${name}.lintian-overrides more)
    string(APPEND overrides "${more}")
  endif()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/packaging/overrides/${name} CONTENT "${overrides}" @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/packaging/overrides/${name} DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides
    COMPONENT ${own} EXCLUDE_FROM_ALL)

  foreach(component IN ITEMS ${P_COMPONENTS} ${own})
    string(TOUPPER ${component} key)
    set(CPACK_COMPONENT_${key}_GROUP ${name} PARENT_SCOPE)
    list(APPEND CPACK_COMPONENTS_ALL ${component})
  endforeach()
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} PARENT_SCOPE)

  string(TOUPPER ${name} key)
  string(CONCAT text "${P_SUMMARY}\nCandela compiles models of ONNX and other formats for accelerators, runs\n"
    "them, and judges ports of itself to new devices.\n\n${P_TEXT}")
  set(CPACK_DEBIAN_${key}_DESCRIPTION "${text}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION ${P_SECTION} PARENT_SCOPE)
  if(P_ARCHITECTURE)
    set(CPACK_DEBIAN_${key}_PACKAGE_ARCHITECTURE ${P_ARCHITECTURE} PARENT_SCOPE)
    set(CPACK_DEBIAN_${key}_PACKAGE_SHLIBDEPS OFF PARENT_SCOPE)
  endif()
  foreach(relation IN ITEMS DEPENDS RECOMMENDS SUGGESTS)
    list(JOIN P_${relation} ", " packages)
    set(CPACK_DEBIAN_${key}_PACKAGE_${relation} "${packages}" PARENT_SCOPE)
  endforeach()
  set(CPACK_DEBIAN_${key}_PACKAGE_CONTROL_EXTRA ${P_CONTROL} PARENT_SCOPE)
endfunction()

# A package of ours, in the version of this one.
set(same "(= ${CANDELA_DEBIAN_VERSION})")
set(library libcandela${PROJECT_VERSION_MAJOR})

candela_debian_package(candela
  COMPONENTS tools manual plugins
  SECTION devel
  SUMMARY "compile and run models on accelerators, and check backends"
  TEXT "This package has the command candela: run, bench, compile, quantize, train,
debug, simulate, conform and what else there is. Its backends are the portable
executor of the host, soft, the oracle, reference, and template, with which
ports begin. Other packages bring faster ones."
  RECOMMENDS candela-backend-cpu
  SUGGESTS candela-backend-npu-sim candela-backend-opencl candela-examples libcandela-dev)
candela_debian_package(candela-examples
  COMPONENTS examples
  SECTION doc
  ARCHITECTURE all
  SUMMARY "models, ports and programs to read and to try Candela on"
  TEXT "This package has a network that reads handwritten digits with data to run it
on, the source of ports to devices, and of programs that embed Candela."
  SUGGESTS candela libcandela-dev)
candela_debian_package(candela-backend-cpu
  COMPONENTS backend_cpu
  SECTION libs
  SUMMARY "backend of Candela that generates machine code for this processor"
  TEXT "This package has the backend cpu, for x86-64 with AVX2 or more, and object
code ahead of time for AArch64, RISC-V and Cortex-M."
  DEPENDS "candela ${same} | ${library} ${same}")
if(TARGET candela_backend_opencl)
  candela_debian_package(candela-backend-opencl
    COMPONENTS backend_opencl
    SECTION libs
    SUMMARY "backend of Candela for devices of OpenCL"
    TEXT "This package has the backend opencl, whose kernels are written for the shapes
of a model, and opencl_primitives, the same device by single primitives. A
driver of OpenCL has to be there for the device, or pocl for processors."
    DEPENDS "candela ${same} | ${library} ${same}"
    RECOMMENDS "pocl-opencl-icd | opencl-icd")
endif()
candela_debian_package(candela-backend-npu-sim
  COMPONENTS backend_npu_sim
  SECTION libs
  SUMMARY "backend of Candela for a simulated NPU"
  TEXT "This package has the backend npu_sim: the simulator of an NPU with a systolic
array, bit-exact and with time, and the sources of its hardware description.
The engine rtl builds those with Verilator when it is asked for."
  DEPENDS "candela ${same} | ${library} ${same}"
  SUGGESTS "verilator, g++")

if(TARGET candela_sdk)
  # What a program that was linked with the library needs, by function: the linker script has the versions.
  file(STRINGS ${PROJECT_SOURCE_DIR}/core/runtime/api/libcandela.map lines)
  set(symbols "libcandela.so.${PROJECT_VERSION_MAJOR} ${library} #MINVER#\n* Build-Depends-Package: libcandela-dev\n")
  foreach(line IN LISTS lines)
    if(line MATCHES "^CANDELA_([0-9.]+)")
      set(since ${CMAKE_MATCH_1})
      string(APPEND symbols " CANDELA_${since}@CANDELA_${since} ${since}\n")
    elseif(line MATCHES "^ +(candela_[a-z0-9_]+);")
      string(APPEND symbols " ${CMAKE_MATCH_1}@CANDELA_${since} ${since}\n")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/packaging/symbols CONTENT "${symbols}" @ONLY)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/packaging/shlibs @ONLY
    CONTENT "libcandela ${PROJECT_VERSION_MAJOR} ${library} (>= ${PROJECT_VERSION})\n")
  candela_debian_package(${library}
    COMPONENTS runtime
    SECTION libs
    SUMMARY "library that compiles models for accelerators and runs them"
    TEXT "This package has the shared library, for programs that embed Candela."
    CONTROL ${PROJECT_BINARY_DIR}/packaging/symbols ${PROJECT_BINARY_DIR}/packaging/shlibs ${debian}/triggers
    RECOMMENDS candela-backend-cpu)
  candela_debian_package(libcandela-dev
    COMPONENTS runtime_development backend_api
    SECTION libdevel
    SUMMARY "headers of Candela, for programs and for backends"
    TEXT "This package has the headers of the library and of plugins, the package for
CMake and the files for pkg-config."
    DEPENDS "${library} ${same}"
    SUGGESTS candela candela-examples)
endif()
if(TARGET candela_ort_ep)
  candela_debian_package(candela-onnxruntime
    COMPONENTS onnxruntime
    SECTION libs
    SUMMARY "execution provider of ONNX Runtime that runs models on Candela"
    TEXT "This package has a library that an unmodified ONNX Runtime of 1.23 or later
registers, from PyPI for instance: its models then run on backends of Candela."
    DEPENDS "${library} ${same}"
    RECOMMENDS candela-backend-cpu)
endif()
if(TARGET candela_simulator)
  set(systemc "")
  if(TARGET candela_systemc)
    set(systemc systemc)
  endif()
  candela_debian_package(candela-simulator-dev
    COMPONENTS simulator ${systemc}
    SECTION libdevel
    SUMMARY "simulator of the NPU of Candela, for programs and virtual platforms"
    TEXT "This package has the NPU as a library, and as a module of SystemC with
sockets of TLM-2.0, for programs without the rest of Candela."
    DEPENDS libfmt-dev "libcandela-dev ${same}"
    RECOMMENDS libsystemc-dev)
endif()

if(TARGET candela_python AND TARGET candela_sdk AND CANDELA_PYTHON STREQUAL "/usr/bin/python3") # no other Python reads Debian's folder
  get_property(python_minor GLOBAL PROPERTY CANDELA_PYTHON_MINOR)
  math(EXPR next_python "${python_minor} + 1")
  foreach(script IN ITEMS postinst prerm)
    configure_file(${debian}/python3-candela.${script} ${PROJECT_BINARY_DIR}/packaging/${script} COPYONLY
      FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  endforeach()
  candela_debian_package(python3-candela
    COMPONENTS python_system
    SECTION python
    SUMMARY "compile and run models on accelerators, from Python"
    TEXT "This package has the package candela of Python 3: models run on arrays of
NumPy, PyTorch or whatever has the buffer protocol or DLPack."
    DEPENDS "${library} ${same}" "python3 (>= 3.${python_minor}~)" "python3 (<< 3.${next_python})" python3:any
    RECOMMENDS candela candela-backend-cpu python3-numpy
    SUGGESTS python3-onnx
    CONTROL ${PROJECT_BINARY_DIR}/packaging/postinst ${PROJECT_BINARY_DIR}/packaging/prerm)
endif()

include(CPack)
