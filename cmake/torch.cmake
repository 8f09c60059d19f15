# LibTorch as PyTorch's wheel ships it. The wheel's own TorchConfig.cmake wants every CUDA library that a
# full installation has; here the --no-deps wheel suffices, so the libraries are imported one by one.
#
# Looked for where the user says (Torch_DIR, CMAKE_PREFIX_PATH: the folder itself, or
# torch/share/cmake[/Torch] as torch.utils.cmake_prefix_path names it), then in LOCKSTEP_VENV.
file(GLOB site_packages "${LOCKSTEP_VENV}/lib/python3*/site-packages")
set(candidates)
if(Torch_DIR)
  list(APPEND candidates "${Torch_DIR}/../../..")
endif()
foreach(prefix IN LISTS CMAKE_PREFIX_PATH)
  list(APPEND candidates "${prefix}" "${prefix}/../.." "${prefix}/torch")
endforeach()
foreach(prefix IN LISTS site_packages)
  list(APPEND candidates "${prefix}/torch")
endforeach()
unset(LOCKSTEP_TORCH CACHE)  # looked for anew: .venv may have come or gone since the last configure
find_path(LOCKSTEP_TORCH include/torch/csrc/api/include/torch/torch.h
          PATHS ${candidates} NO_DEFAULT_PATH)
if(NOT LOCKSTEP_TORCH)
  message(FATAL_ERROR "LibTorch was not found in ${LOCKSTEP_VENV}. Run 'make setup', or name yours with "
          "-DTorch_DIR=.../torch/share/cmake/Torch or -DLOCKSTEP_VENV=DIR, or leave the runner out with "
          "-DLOCKSTEP_RUNNER=OFF.")
endif()
get_filename_component(LOCKSTEP_TORCH "${LOCKSTEP_TORCH}" REALPATH)
file(STRINGS "${LOCKSTEP_TORCH}/version.py" version_line REGEX "^__version__ = ")
string(REGEX REPLACE ".*'([^']*)'.*" "\\1" LOCKSTEP_TORCH_VERSION "${version_line}")
message(STATUS "LibTorch ${LOCKSTEP_TORCH_VERSION}: ${LOCKSTEP_TORCH}")
if(NOT LOCKSTEP_TORCH_VERSION MATCHES "^2\\.11\\.")
  message(WARNING "Lockstep is made and tested with LibTorch 2.11; this is ${LOCKSTEP_TORCH_VERSION}.")
endif()

function(lockstep_import_torch name)
  cmake_parse_arguments(torch "" "LIBRARY" "NEEDS" ${ARGN})
  add_library(lockstep::${name} SHARED IMPORTED GLOBAL)
  set_target_properties(lockstep::${name} PROPERTIES
    IMPORTED_LOCATION "${LOCKSTEP_TORCH}/lib/${torch_LIBRARY}"
    IMPORTED_SONAME "${torch_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES
      "${LOCKSTEP_TORCH}/include;${LOCKSTEP_TORCH}/include/torch/csrc/api/include"
    INTERFACE_LINK_LIBRARIES "${torch_NEEDS}")
endfunction()
lockstep_import_torch(c10 LIBRARY libc10.so)
lockstep_import_torch(torch_cpu LIBRARY libtorch_cpu.so NEEDS lockstep::c10)

# What the wheel itself needs lies in nvidia/*/lib beside it: needed to link, and to run from the build
# folder. RUNPATH, so that LD_LIBRARY_PATH can point elsewhere on another machine.
file(GLOB LOCKSTEP_TORCH_RPATH "${LOCKSTEP_TORCH}/../nvidia/*/lib")
set(torch_rpath_links)
foreach(folder IN LISTS LOCKSTEP_TORCH_RPATH)
  list(APPEND torch_rpath_links "-Wl,-rpath-link,${folder}")
endforeach()
list(PREPEND LOCKSTEP_TORCH_RPATH "${LOCKSTEP_TORCH}/lib")
target_link_options(lockstep::c10 INTERFACE -Wl,--enable-new-dtags ${torch_rpath_links})
