# SPDX-License-Identifier: MIT
# How every target is compiled: exact arithmetic, warnings, sanitizers, an object library per ISA.
include(CheckSymbolExists)
find_package(PkgConfig)

# The compiler knows the target better than the kernel's name does (an i386 chroot, a cross build).
check_symbol_exists(__x86_64__ stddef.h POSENC_X86_64)
check_symbol_exists(__aarch64__ stddef.h POSENC_AARCH64)
check_symbol_exists(__s390x__ stddef.h POSENC_S390X)

set(POSENC_WARNINGS -Wall -Wextra -Wpedantic -Wshadow)
set(POSENC_STRICT_WARNINGS ${POSENC_WARNINGS}
  -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wvla)

if(POSENC_SANITIZE)
  add_compile_options(-fsanitize=${POSENC_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${POSENC_SANITIZE})
endif()

# Sets NAME to what pkg-config finds, as the target PkgConfig::NAME, or stops and names the package.
function(posenc_require name module package)
  if(PkgConfig_FOUND)
    pkg_check_modules(${name} QUIET IMPORTED_TARGET GLOBAL ${module})
  endif()
  if(${name}_FOUND)
    # The compiler's own folders need no mention, and would end up in the installed files.
    list(REMOVE_ITEM ${name}_LIBRARY_DIRS ${CMAKE_C_IMPLICIT_LINK_DIRECTORIES})
    set(${name}_LIBRARY_DIRS ${${name}_LIBRARY_DIRS} CACHE INTERNAL "")
  else()
    message(FATAL_ERROR
      "${module} not found: install the Debian package ${package} (and pkg-config)")
  endif()
endfunction()

# What all our code is compiled with. Contraction would change bits, so it is off everywhere.
function(posenc_compile target)
  target_include_directories(${target} PRIVATE
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(${target} PRIVATE -ffp-contract=off ${ARGN})
  if(POSENC_S390X)
    # There -std=c11 computes float in double, for the sake of an old float_t.
    target_compile_options(${target} PRIVATE -fexcess-precision=fast)
  endif()
endfunction()

# Kernels say themselves what is a vector, the oracle has none. A compiler that makes more of them,
# out of the setting up of a call, puts wide loads behind narrow stores: 20 ns on a call of 180.
function(posenc_library_objects target)
  posenc_compile(${target} ${POSENC_STRICT_WARNINGS} -fno-tree-vectorize)
  if(POSENC_AARCH64)
    # gcc's own choice of atomics at run time comes with a constructor: work before main.
    target_compile_options(${target} PRIVATE -mno-outline-atomics)
  endif()
  target_compile_definitions(${target} PRIVATE
    "POSENC_API=__attribute__((visibility(\"default\")))")
endfunction()

# posenc_add_isa(NAME FLAGS flag... SOURCES file...): the code of one ISA, compiled as a unit of its
# own, so that no instruction of it can land in code that runs on other CPUs. Part of libposenc.
function(posenc_add_isa name)
  cmake_parse_arguments(PARSE_ARGV 1 isa "" "" "FLAGS;SOURCES")
  add_library(posenc_${name} OBJECT ${isa_SOURCES})
  posenc_library_objects(posenc_${name})
  target_compile_options(posenc_${name} PRIVATE ${isa_FLAGS})
  if(POSENC_SANITIZE MATCHES address)
    # Both sanitizers at once take clang a minute a file here; gcc's preset has the other one.
    target_compile_options(posenc_${name} PRIVATE -fno-sanitize=undefined)
  endif()
  set_property(GLOBAL APPEND PROPERTY POSENC_OBJECTS posenc_${name})
endfunction()

# Makes a shared library from objects: soname, version script, nothing undefined.
function(posenc_shared_library target map)
  set_target_properties(${target} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0
    LINK_DEPENDS ${map})
  target_link_options(${target} PRIVATE LINKER:--version-script=${map})
  if(NOT POSENC_SANITIZE)
    target_link_options(${target} PRIVATE LINKER:--no-undefined)
  endif()
endfunction()
