# Decides whether there is a CUDA backend (SOFTMAX_WITH_CUDA) and for which architectures
# (SOFTMAX_CUDA_ARCHITECTURES), without touching what a parent project has set.
set(SOFTMAX_WITH_CUDA OFF)
if(NOT SOFTMAX_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "SOFTMAX_CUDA is '${SOFTMAX_CUDA}'; it must be AUTO, ON or OFF.")
endif()
if(NOT SOFTMAX_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(SOFTMAX_WITH_CUDA ON)
  elseif(SOFTMAX_CUDA STREQUAL "ON")
    message(FATAL_ERROR
      "SOFTMAX_CUDA=ON, but no CUDA compiler was found: put nvcc on PATH or set CUDACXX.")
  endif()
endif()

if(SOFTMAX_WITH_CUDA)
  # Where nobody has said, build for every architecture of the design that this toolkit knows.
  # enable_language would fill in the compiler's own default, and in the cache: the parent, and
  # this project's next configure, would take it for somebody's wish. OFF, in this scope, stops it.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
    set(_softmax_default_architectures ON)
    set(CMAKE_CUDA_ARCHITECTURES OFF)
  endif()
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  if(_softmax_default_architectures)
    set(SOFTMAX_CUDA_ARCHITECTURES 75-real 80-real 86-real 89-real 90-real)
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
      list(APPEND SOFTMAX_CUDA_ARCHITECTURES 100-real 120-real 120-virtual)
    else()
      list(APPEND SOFTMAX_CUDA_ARCHITECTURES 90-virtual)
    endif()
  else()
    set(SOFTMAX_CUDA_ARCHITECTURES ${CMAKE_CUDA_ARCHITECTURES})
  endif()
  message(STATUS "libsoftmax: CUDA ${CMAKE_CUDA_COMPILER_VERSION}, architectures "
    "${SOFTMAX_CUDA_ARCHITECTURES}")
else()
  message(STATUS
    "libsoftmax: no CUDA, building the CPU backend only (SOFTMAX_CUDA=${SOFTMAX_CUDA})")
endif()
