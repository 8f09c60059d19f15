# One room of the architecture as a static library: lockstep_room(sim SOURCES ... PUBLIC ... PRIVATE ...)
# makes lockstep_sim, known as lockstep::sim here and after installation.
function(lockstep_room name)
  cmake_parse_arguments(room "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  set(target lockstep_${name})
  add_library(${target} STATIC ${room_SOURCES})
  target_link_libraries(${target} PUBLIC ${room_PUBLIC}
                        PRIVATE $<BUILD_INTERFACE:lockstep_flags> ${room_PRIVATE})
  target_compile_definitions(${target} PRIVATE LOCKSTEP_VERSION="${PROJECT_VERSION}")
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/lockstep>)
  add_library(lockstep::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
endfunction()

# Files of runner/ and tests/runner/ that only the GPU build compiles.
set(LOCKSTEP_GPU_FILES "/cuda/[^/]*$|_cuda(_test)?\\.cpp$|/nccl[^/]*\\.cpp$|/cupti[^/]*\\.cpp$")
