# cmake -P: runs Verilator and gathers what it wrote, under names that it chooses itself, in one file to compile.
# VERILATOR, DIRECTORY (emptied), ARGUMENTS (a list), RESULT (all.cpp within DIRECTORY).
file(REMOVE_RECURSE ${DIRECTORY})
file(MAKE_DIRECTORY ${DIRECTORY})
execute_process(COMMAND ${VERILATOR} ${ARGUMENTS} --Mdir ${DIRECTORY} RESULT_VARIABLE status)
if(status)
  message(FATAL_ERROR "Verilator found fault with the sources above")
endif()
file(GLOB sources RELATIVE ${DIRECTORY} ${DIRECTORY}/*.cpp)
list(SORT sources)
list(TRANSFORM sources REPLACE "(.+)" "#include \"\\1\"")
list(JOIN sources "\n" text)
file(WRITE ${RESULT} "${text}\n")
