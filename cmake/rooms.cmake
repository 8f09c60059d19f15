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
  lockstep_group(${target} ${room_SOURCES})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
endfunction()

# With CMAKE_UNITY_BUILD neighbours in a folder are compiled together: LibTorch's and the JSON library's
# headers take longer to read than most of our files. The presets that a user waits for do so; the others,
# and clang-tidy, see that each file includes what it needs.
function(lockstep_group target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  foreach(source IN LISTS ARGN)
    cmake_path(GET source PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    if(NOT count_${folder})
      set(count_${folder} 0)
    endif()
    math(EXPR group "${count_${folder}} / ${LOCKSTEP_UNITY_FILES}")
    math(EXPR count_${folder} "${count_${folder}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${folder}_${group}")
  endforeach()
endfunction()

# Files of runner/ and tests/runner/ that only the GPU build compiles.
set(LOCKSTEP_GPU_FILES "/cuda/[^/]*$|_cuda(_test)?\\.cpp$|/nccl[^/]*\\.cpp$|/cupti[^/]*\\.cpp$")
