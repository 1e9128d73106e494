# Defines evo_torch: headers and libraries of the PyTorch that python3 imports, else of a LibTorch
# that CMake finds (libtorch-dev, or CMAKE_PREFIX_PATH). Torch's own CMake package is not used: that
# of a CUDA build compiles with nvcc, and needs every library that PyTorch was built with.
# EVO_TORCH_CXX11_ABI: FALSE for a PyTorch that was built with libstdc++'s old strings.
set(EVO_TORCH_CXX11_ABI TRUE)
find_program(EVO_PYTHON NAMES python3)
if(EVO_PYTHON)
  execute_process(COMMAND ${EVO_PYTHON} -c
    "import os, torch; print(os.path.dirname(torch.__file__), int(torch.compiled_with_cxx11_abi()), torch.__version__, sep=';')"
    OUTPUT_VARIABLE evo_python_torch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(evo_python_torch)
  list(GET evo_python_torch 0 evo_torch_root)
  list(GET evo_python_torch 1 EVO_TORCH_CXX11_ABI)
  list(GET evo_python_torch 2 evo_torch_version)
  set(evo_torch_places PATHS ${evo_torch_root} NO_DEFAULT_PATH)
endif()

find_path(EVO_TORCH_INCLUDE torch/csrc/api/include/torch/jit.h
  ${evo_torch_places} PATH_SUFFIXES include)
foreach(name c10 torch torch_cpu)
  find_library(EVO_TORCH_${name} ${name} ${evo_torch_places} PATH_SUFFIXES lib)
  if(NOT EVO_TORCH_${name} OR NOT EVO_TORCH_INCLUDE)
    message(FATAL_ERROR "LibTorch is missing: install PyTorch for python3, or libtorch-dev")
  endif()
endforeach()
find_library(EVO_TORCH_torch_cuda torch_cuda ${evo_torch_places} PATH_SUFFIXES lib)
message(STATUS "LibTorch ${evo_torch_version} (${EVO_TORCH_torch})")

add_library(evo_torch INTERFACE)
target_include_directories(evo_torch SYSTEM INTERFACE
  ${EVO_TORCH_INCLUDE} ${EVO_TORCH_INCLUDE}/torch/csrc/api/include)
if(NOT EVO_TORCH_CXX11_ABI)
  target_compile_definitions(evo_torch INTERFACE _GLIBCXX_USE_CXX11_ABI=0)
endif()
# torch_cuda registers itself when it is loaded; nothing refers to it. What LibTorch's libraries need
# in turn (cuDNN, NCCL, ...) is found by them when they are loaded.
target_link_options(evo_torch INTERFACE -Wl,--no-as-needed -Wl,--allow-shlib-undefined)
# LibTorch brings the shared C++ library. A compiler that would link its own copy statically, by
# default or because its development link is missing, would put two of them into one process.
target_link_libraries(evo_torch INTERFACE -l:libstdc++.so.6 ${EVO_TORCH_torch} ${EVO_TORCH_torch_cpu} ${EVO_TORCH_c10})
if(EVO_TORCH_torch_cuda)
  target_link_libraries(evo_torch INTERFACE ${EVO_TORCH_torch_cuda})
endif()
