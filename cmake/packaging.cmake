# CPack: a TGZ to unpack anywhere and a Debian package, both from one build:
#
#   cmake --workflow --preset package          configure, build and pack into build/package/
#
# or, from any top-level build folder: cpack -G TGZ, cpack -G DEB. The dependencies of the Debian
# package are found by dpkg-shlibdeps on the machine that packs (apt: dpkg-dev, file).
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_NAME libsoftmax)
set(CPACK_PACKAGE_VENDOR "The libsoftmax authors")
set(CPACK_PACKAGE_CONTACT "The libsoftmax authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES OFF)  # a Release build has no debug information to strip
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_VERBATIM_VARIABLES ON)

set(CPACK_DEBIAN_PACKAGE_NAME libsoftmax-dev)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)      # the real dependencies of the .so and the program
set(CPACK_DEBIAN_PACKAGE_SUGGESTS libhwy-dev)  # for those who link libsoftmax.a
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)

include(CPack)
