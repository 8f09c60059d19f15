# Libraries of the distribution that sim and calibration stand on; also read by find_package(lockstep).
# LibTorch, CUDA, NCCL and Gloo are looked for in runner/ only, CLI11 in cli/.
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Boost REQUIRED)
find_package(Threads REQUIRED)
if(LOCKSTEP_STATIC_DEPS)
  set(ZLIB_USE_STATIC_LIBS ON)
  set(LOCKSTEP_FMT fmt::fmt-header-only)  # Debian ships no static libfmt
  find_library(LOCKSTEP_YAML_ARCHIVE libyaml-cpp.a REQUIRED)
  add_library(yaml-cpp::yaml-cpp STATIC IMPORTED)
  set_target_properties(yaml-cpp::yaml-cpp PROPERTIES IMPORTED_LOCATION "${LOCKSTEP_YAML_ARCHIVE}")
else()
  set(LOCKSTEP_FMT fmt::fmt)
  set(LOCKSTEP_SIMDJSON ON)  # Debian ships no static one; without it records are read more slowly
  find_package(simdjson REQUIRED)
  find_package(yaml-cpp REQUIRED)
  if(NOT TARGET yaml-cpp::yaml-cpp)  # yaml-cpp 0.7 exports no namespace
    add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
  endif()
endif()
find_package(ZLIB REQUIRED)
