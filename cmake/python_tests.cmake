# Tests written in Python: one ctest test for every function `test_<sentence>` of a file, so that
# none can be forgotten, and one that is skipped (exit code 77) is seen to be.

# What the scripts need to know of this build, written once.
function(softmax_write_test_config)
  set(text "{
  \"source\": \"${PROJECT_SOURCE_DIR}\",
  \"build\": \"${PROJECT_BINARY_DIR}\",
  \"shared\": \"$<TARGET_FILE:softmax_shared>\",
  \"static\": \"$<TARGET_FILE:softmax_static>\",
  \"version\": \"${PROJECT_VERSION}\",
  \"abi_version\": \"${SOFTMAX_ABI_VERSION}\",
  \"cc\": \"${CMAKE_C_COMPILER}\",
  \"cxx\": \"${CMAKE_CXX_COMPILER}\",
  \"cmake\": \"${CMAKE_COMMAND}\",
  \"cpack\": \"${CMAKE_CPACK_COMMAND}\",
  \"generator\": \"${CMAKE_GENERATOR}\",
  \"config\": \"$<CONFIG>\",
  \"cuda\": $<IF:$<BOOL:${SOFTMAX_WITH_CUDA}>,true,false>,
  \"cuda_architectures\": \"${SOFTMAX_CUDA_ARCHITECTURES}\",
  \"cuda_include\": \"${CUDAToolkit_INCLUDE_DIRS}\",
  \"system_libraries\": \"${SOFTMAX_STATIC_SYSTEM_LIBRARIES}\"
}
")
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/test_config.json CONTENT "${text}")
endfunction()

# softmax_add_python_tests(<prefix> <file> [ctest properties...])
function(softmax_add_python_tests prefix file)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  cmake_path(ABSOLUTE_PATH file)
  # A function added later is picked up by the next build.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(STRINGS ${file} functions REGEX "^def test_[a-z0-9_]+\\(")
  if(NOT functions)
    message(FATAL_ERROR "${file} has no tests")
  endif()
  set(environment
    SOFTMAX_TEST_CONFIG=${PROJECT_BINARY_DIR}/test_config.json
    PYTHONPATH=${PROJECT_SOURCE_DIR}/tests/support/python
    PYTHONDONTWRITEBYTECODE=1)
  foreach(line IN LISTS functions)
    string(REGEX REPLACE "^def test_([a-z0-9_]+)\\(.*" "\\1" sentence "${line}")
    add_test(NAME ${prefix}.${sentence} COMMAND Python3::Interpreter ${file} test_${sentence})
    set_tests_properties(${prefix}.${sentence} PROPERTIES
      SKIP_RETURN_CODE 77
      TIMEOUT 900
      ENVIRONMENT "${environment}"
      ${ARGN})
  endforeach()
endfunction()

# softmax_add_pytest_tests(<prefix> <python> <environment> <files...>): the same by pytest.
# `environment` is what the test property takes, without what all of them need.
function(softmax_add_pytest_tests prefix python environment)
  foreach(file IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(STRINGS ${file} functions REGEX "^def test_[a-z0-9_]+\\(")
    if(NOT functions)
      message(FATAL_ERROR "${file} has no tests")
    endif()
    foreach(line IN LISTS functions)
      string(REGEX REPLACE "^def test_([a-z0-9_]+)\\(.*" "\\1" sentence "${line}")
      add_test(NAME ${prefix}.${sentence}
        COMMAND ${python} -m pytest -q -p no:cacheprovider -rs "${file}::test_${sentence}")
      set_tests_properties(${prefix}.${sentence} PROPERTIES
        SKIP_RETURN_CODE 77
        TIMEOUT 300
        WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}
        ENVIRONMENT "${environment};PYTHONDONTWRITEBYTECODE=1;LC_ALL=C.UTF-8")
    endforeach()
  endforeach()
endfunction()
