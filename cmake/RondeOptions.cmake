# SPDX-License-Identifier: Apache-2.0
# Flags that hold for every target of the project.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# The wheel and the preset "release" are the same build.
set(CMAKE_C_FLAGS_RELEASE "-O3 -g1")
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -g1")

find_program(CCACHE ccache)
if(CCACHE)
  # Builds in another folder (a fresh clone, CI) hit the same cache.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
endif()

add_compile_options(
  -Wall -Wextra -Wshadow -Werror -fno-omit-frame-pointer
  -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=
  # The same arithmetic on every instruction set: no contraction of a*b+c.
  -ffp-contract=off
  # A field that a designated initialiser leaves out has its default, which is what is meant.
  -Wno-missing-field-initializers
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  # At -O3 g++ 12 sees overlaps, overflows and unset members in std::string, std::vector and std::variant that are not
  # there. The builds for tests keep these warnings, and the sanitizers.
  "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-Wno-restrict;-Wno-stringop-overflow;-Wno-maybe-uninitialized>")
if(RONDE_SANITIZE)
  add_compile_options(-fsanitize=${RONDE_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${RONDE_SANITIZE})
endif()

# Sanitized programs cannot start where the kernel randomises more address bits than they know; a container may forbid
# the remedy, and then does without.
if(RONDE_SANITIZE)
  execute_process(COMMAND setarch -R true RESULT_VARIABLE no_setarch OUTPUT_QUIET ERROR_QUIET)
  if(NOT no_setarch)
    set(RONDE_TEST_LAUNCHER setarch -R)
  endif()
endif()
