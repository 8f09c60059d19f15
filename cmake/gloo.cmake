# The distribution's Gloo. LibTorch exports Gloo symbols of its own from another version, so lockstep::gloo
# must stand before LibTorch on every link line; tests/runner asserts that our calls land in libgloo.
find_library(LOCKSTEP_GLOO_LIBRARY gloo REQUIRED)
find_path(LOCKSTEP_GLOO_INCLUDE gloo/allreduce.h REQUIRED)
add_library(lockstep::gloo SHARED IMPORTED GLOBAL)
set_target_properties(lockstep::gloo PROPERTIES
  IMPORTED_LOCATION "${LOCKSTEP_GLOO_LIBRARY}"
  INTERFACE_INCLUDE_DIRECTORIES "${LOCKSTEP_GLOO_INCLUDE}")
