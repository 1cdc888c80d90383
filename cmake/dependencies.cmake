# Finds what the library itself needs; one clear message where something is missing.
set(_softmax_missing "")

find_package(hwy QUIET)
if(NOT hwy_FOUND)
  list(APPEND _softmax_missing
    "Google Highway (Debian, Ubuntu: libhwy-dev; elsewhere set hwy_DIR or CMAKE_PREFIX_PATH)")
endif()

find_package(OpenMP QUIET COMPONENTS CXX)
if(NOT OpenMP_CXX_FOUND)
  list(APPEND _softmax_missing
    "OpenMP for ${CMAKE_CXX_COMPILER_ID} (Debian, Ubuntu: part of g++; for clang++: libomp-dev)")
endif()

find_package(Threads QUIET)
if(NOT Threads_FOUND)
  list(APPEND _softmax_missing "POSIX threads (Debian, Ubuntu: libc6-dev)")
endif()

if(_softmax_missing)
  list(JOIN _softmax_missing "\n  - " _softmax_missing)
  message(FATAL_ERROR "libsoftmax cannot be built without:\n  - ${_softmax_missing}")
endif()
