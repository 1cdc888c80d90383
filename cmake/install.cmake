# Installs the headers, both libraries, the CMake package and softmax.pc.
include(CMakePackageConfigHelpers)
set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Softmax)

set(_headers include/softmax.h)
if(EXISTS ${PROJECT_SOURCE_DIR}/include/softmax.hpp)
  list(APPEND _headers include/softmax.hpp)
endif()
install(FILES ${_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# One export set a library, so that the shared one can be used where what the static one needs is
# missing, and a distribution can ship them apart.
foreach(_kind shared static)
  install(TARGETS softmax_${_kind} EXPORT Softmax-${_kind}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT Softmax-${_kind} NAMESPACE Softmax:: FILE Softmax-${_kind}.cmake
    DESTINATION ${_package_dir})
endforeach()

# Below 1.0 a minor release may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/SoftmaxConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
configure_package_config_file(cmake/SoftmaxConfig.cmake.in
  ${PROJECT_BINARY_DIR}/SoftmaxConfig.cmake
  INSTALL_DESTINATION ${_package_dir}
  NO_SET_AND_CHECK_MACRO)
install(FILES
  ${PROJECT_BINARY_DIR}/SoftmaxConfig.cmake ${PROJECT_BINARY_DIR}/SoftmaxConfigVersion.cmake
  DESTINATION ${_package_dir})

# softmax.pc: the prefix is found from where the file lies, unless an install directory is absolute
# and so tied to this prefix.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(SOFTMAX_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
  set(SOFTMAX_PC_LIBDIR "${CMAKE_INSTALL_LIBDIR}")
else()
  # From <libdir>/pkgconfig up to the prefix: one step for each of its parts.
  cmake_path(SET _up NORMALIZE "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
  string(REGEX REPLACE "[^/]+" ".." _up "${_up}")
  set(SOFTMAX_PC_PREFIX "\${pcfiledir}/${_up}")
  set(SOFTMAX_PC_LIBDIR "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(SOFTMAX_PC_INCLUDEDIR "${CMAKE_INSTALL_INCLUDEDIR}")
else()
  set(SOFTMAX_PC_INCLUDEDIR "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
# What libsoftmax.a needs. Libraries outside the linker's own path get their -L.
set(SOFTMAX_PC_PRIVATE -lhwy)
get_target_property(_hwy_configs hwy::hwy IMPORTED_CONFIGURATIONS)
foreach(_config IN LISTS _hwy_configs)
  get_target_property(_hwy_file hwy::hwy IMPORTED_LOCATION_${_config})
  if(_hwy_file)
    cmake_path(GET _hwy_file PARENT_PATH _hwy_dir)
  endif()
endforeach()
if(_hwy_dir AND NOT _hwy_dir IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
  list(PREPEND SOFTMAX_PC_PRIVATE -L${_hwy_dir})
endif()
if(SOFTMAX_WITH_CUDA)
  list(APPEND SOFTMAX_PC_PRIVATE -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static)
endif()
list(TRANSFORM SOFTMAX_STATIC_SYSTEM_LIBRARIES PREPEND -l OUTPUT_VARIABLE _system)
list(APPEND SOFTMAX_PC_PRIVATE ${_system})
list(JOIN SOFTMAX_PC_PRIVATE " " SOFTMAX_PC_PRIVATE)
configure_file(cmake/softmax.pc.in ${PROJECT_BINARY_DIR}/softmax.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/softmax.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Where Debian wants it, and a fine place elsewhere.
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/libsoftmax-dev RENAME copyright)
