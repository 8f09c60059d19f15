# The GPU half: CUDA runtime, NCCL and CUPTI of the toolkit, and LibTorch's CUDA libraries. Links on a
# machine without a GPU, against the --no-deps wheel that lacks cuDNN, cuBLAS and so on: what is undefined
# in LibTorch's own libraries is found at run time, on a machine with the full wheel.
find_package(CUDAToolkit REQUIRED)

function(lockstep_import_cuda name header)
  find_library(LOCKSTEP_${name}_LIBRARY ${name} REQUIRED
               HINTS "${CUDAToolkit_LIBRARY_DIR}" "${CUDAToolkit_TARGET_DIR}/extras/CUPTI/lib64")
  find_path(LOCKSTEP_${name}_INCLUDE ${header} REQUIRED
            HINTS ${CUDAToolkit_INCLUDE_DIRS} "${CUDAToolkit_TARGET_DIR}/extras/CUPTI/include")
  add_library(lockstep::${name} SHARED IMPORTED GLOBAL)
  set_target_properties(lockstep::${name} PROPERTIES
    IMPORTED_LOCATION "${LOCKSTEP_${name}_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${LOCKSTEP_${name}_INCLUDE}"
    INTERFACE_LINK_LIBRARIES CUDA::cudart)
endfunction()
lockstep_import_cuda(nccl nccl.h)
lockstep_import_cuda(cupti cupti.h)

lockstep_import_torch(c10_cuda LIBRARY libc10_cuda.so NEEDS "lockstep::c10;CUDA::cudart")
# libtorch_cuda registers its kernels when loaded and nothing of ours names it: keep it although unused.
add_library(lockstep::torch_cuda INTERFACE IMPORTED GLOBAL)
target_link_libraries(lockstep::torch_cuda INTERFACE
  "-Wl,--push-state,--no-as-needed ${LOCKSTEP_TORCH}/lib/libtorch_cuda.so -Wl,--pop-state"
  lockstep::c10_cuda lockstep::torch_cpu)
target_link_options(lockstep::torch_cuda INTERFACE -Wl,--allow-shlib-undefined)
