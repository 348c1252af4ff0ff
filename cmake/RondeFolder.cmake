# SPDX-License-Identifier: Apache-2.0
# One folder is one library. A folder's CMakeLists.txt is one call:
#
#   ronde_folder(op DEPS base tensor)
#
# x.cc belongs to the library ronde_op, x_test.cc to the test program op_test, x_bench.cc is a program of its own; main.cc is
# left to the folder.
# LABELS marks the test program for ctest (threads: also run under TSan, and built by the target threaded_tests). LIBS are
# outside libraries, TEST_DEPS folders that only tests and benchmarks see.
function(ronde_folder name)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS;LABELS;TEST_DEPS" ${ARGN})
  file(GLOB all CONFIGURE_DEPENDS *.cc)
  set(tests ${all})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  set(benches ${all})
  list(FILTER benches INCLUDE REGEX "_bench\\.cc$")
  set(sources ${all})
  list(FILTER sources EXCLUDE REGEX "(_test|_bench|/main)\\.cc$")

  set(deps)
  foreach(dep ${ARG_DEPS})
    list(APPEND deps ronde_${dep})
  endforeach()
  if(sources)
    add_library(ronde_${name} STATIC ${sources})
    target_include_directories(ronde_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(ronde_${name} PUBLIC ${deps} ${ARG_LIBS})
  else()
    add_library(ronde_${name} INTERFACE)
    target_include_directories(ronde_${name} INTERFACE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(ronde_${name} INTERFACE ${deps} ${ARG_LIBS})
  endif()

  if(NOT RONDE_TESTS)
    return()
  endif()
  set(test_deps)
  foreach(dep ${ARG_TEST_DEPS})
    list(APPEND test_deps ronde_${dep})
  endforeach()
  if(tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE ronde_${name} ${test_deps} GTest::gmock GTest::gtest_main)
    if(RONDE_TEST_LAUNCHER)
      set_target_properties(${name}_test PROPERTIES CROSSCOMPILING_EMULATOR "${RONDE_TEST_LAUNCHER}")
    endif()
    add_test(NAME ${name} COMMAND ${name}_test)
    if("threads" IN_LIST ARG_LABELS)
      add_dependencies(threaded_tests ${name}_test)
    endif()
    set_tests_properties(${name} PROPERTIES TIMEOUT 300 LABELS "${ARG_LABELS}"
      ENVIRONMENT "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1;UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1")
  endif()
  foreach(bench ${benches})
    get_filename_component(stem ${bench} NAME_WE)
    add_executable(${stem} ${bench})
    target_link_libraries(${stem} PRIVATE ronde_${name} ${test_deps} benchmark::benchmark_main)
  endforeach()
endfunction()
