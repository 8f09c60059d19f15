# Libraries of the distribution. LibTorch, CUDA, NCCL and Gloo are looked for in runner/ only.
find_package(yaml-cpp REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Boost REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Threads REQUIRED)
if(NOT TARGET yaml-cpp::yaml-cpp)  # yaml-cpp 0.7 exports no namespace
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()
