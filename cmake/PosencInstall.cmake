# SPDX-License-Identifier: MIT
# Install rules: headers, libraries, command, pkg-config files and CMake packages.
include(CMakePackageConfigHelpers)

set(config_templates ${PROJECT_SOURCE_DIR}/cmake)

# posenc_pkgconfig(NAME): NAME.pc from cmake/NAME.pc.in. Paths under the prefix are written relative
# to the file itself, so that a staged or moved tree answers with its own paths.
function(posenc_pkgconfig name)
  if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
    set(pc_prefix ${CMAKE_INSTALL_PREFIX})
    set(pc_libdir ${CMAKE_INSTALL_LIBDIR})
  else()
    file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
    string(REGEX REPLACE "/$" "" up ${up})
    set(pc_prefix "\${pcfiledir}/${up}")
    set(pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
  endif()
  set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
  if(IS_ABSOLUTE ${CMAKE_INSTALL_INCLUDEDIR})
    set(pc_includedir ${CMAKE_INSTALL_INCLUDEDIR})
  endif()
  # By name and not as Requires.private, which would make every user need jansson's own file.
  list(TRANSFORM JANSSON_LIBRARY_DIRS PREPEND -L OUTPUT_VARIABLE pc_jansson)
  list(TRANSFORM JANSSON_LIBRARIES PREPEND -l OUTPUT_VARIABLE names)
  list(APPEND pc_jansson ${names})
  list(JOIN pc_jansson " " pc_jansson)
  configure_file(${config_templates}/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

# posenc_package(NAME TARGETS target...): all of one library but its header.
function(posenc_package name)
  cmake_parse_arguments(PARSE_ARGV 1 package "" "" "TARGETS")
  set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/${name})
  install(TARGETS ${package_TARGETS} EXPORT ${name}-targets)
  install(EXPORT ${name}-targets NAMESPACE posenc:: DESTINATION ${folder})
  configure_package_config_file(${config_templates}/${name}-config.cmake.in
    ${PROJECT_BINARY_DIR}/${name}-config.cmake INSTALL_DESTINATION ${folder}
    NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/${name}-config-version.cmake
    COMPATIBILITY SameMajorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/${name}-config.cmake
    ${PROJECT_BINARY_DIR}/${name}-config-version.cmake DESTINATION ${folder})
  posenc_pkgconfig(${name})
endfunction()

# In Debian's own prefix no run path is wanted; elsewhere it is relative, so that a tree can move.
function(posenc_run_path target from)
  if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    return()
  endif()
  if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
    set(path ${CMAKE_INSTALL_LIBDIR})
  else()
    file(RELATIVE_PATH path /${from} /${CMAKE_INSTALL_LIBDIR})
    set(path "\$ORIGIN/${path}")
  endif()
  set_target_properties(${target} PROPERTIES INSTALL_RPATH ${path})
endfunction()

# The licence asks to go with every copy.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
foreach(header absolute attention base biases builders cache layouts posenc rope)
  install(FILES ${PROJECT_SOURCE_DIR}/include/posenc/${header}.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/posenc)
endforeach()
posenc_package(posenc TARGETS posenc posenc_static)
if(POSENC_BUILD_CONTRACT)
  install(FILES ${PROJECT_SOURCE_DIR}/include/posenc/contract.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/posenc)
  posenc_package(posenc-contract TARGETS posenc_contract posenc_contract_static)
  posenc_run_path(posenc_contract ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET posenc_command)
  install(TARGETS posenc_command)
  posenc_run_path(posenc_command ${CMAKE_INSTALL_BINDIR})
endif()
