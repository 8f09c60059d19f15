# Flags that every target of ours takes; never those of a dependency.
add_library(lockstep_flags INTERFACE)
target_compile_options(lockstep_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                                                -Wnon-virtual-dtor)
# GCC 12 takes the memcpy inside std::string's operator+ for an overlapping one (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(lockstep_flags INTERFACE -Wno-restrict)
endif()
# It takes the private types of a file for a header's where files are compiled together.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_UNITY_BUILD)
  target_compile_options(lockstep_flags INTERFACE -Wno-subobject-linkage)
endif()
if(LOCKSTEP_WERROR)
  target_compile_options(lockstep_flags INTERFACE -Werror)
endif()
target_include_directories(lockstep_flags INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
if(LOCKSTEP_SANITIZE)
  target_compile_options(lockstep_flags INTERFACE -fsanitize=${LOCKSTEP_SANITIZE}
                                                  -fno-sanitize-recover=all
                                                  -fno-omit-frame-pointer -g)
  target_link_options(lockstep_flags INTERFACE -fsanitize=${LOCKSTEP_SANITIZE})
endif()
