# SPDX-License-Identifier: Apache-2.0
# The build id: version and hash of the headers that say what is on the wire. Two builds whose ids differ refuse each
# other in the hello. Writes build_id.h below the build folder, at configure time, again when one of the headers changes.
function(ronde_write_build_id out_dir)
  set(src ${CMAKE_SOURCE_DIR}/src)
  file(GLOB headers CONFIGURE_DEPENDS
    ${src}/base/bytes.h ${src}/coord/codec*.h ${src}/control/*.h ${src}/transport/tcp*.h
    ${src}/member/broker.h ${src}/member/hello.h ${src}/member/store*.h)
  list(SORT headers)
  set(all "${PROJECT_VERSION}")
  foreach(header ${headers})
    file(SHA256 ${header} hash)
    file(RELATIVE_PATH name ${src} ${header})
    string(APPEND all "\n${name} ${hash}")
  endforeach()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${headers})
  string(SHA256 digest "${all}")
  string(SUBSTRING ${digest} 0 16 RONDE_BUILD_ID)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/build_id.h.in ${out_dir}/build_id.h @ONLY)
endfunction()
